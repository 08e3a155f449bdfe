"""The open turns of a Blade session: their blocks, tool calls and loops, and the text that is held back."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import gateway.model as m
from adapters.blade.wire import BLOCK_TYPES, BlockType
from gateway.json_values import JsonObject, JsonValue

CONTEXT_WINDOW = 200_000
"""The context window of a turn whose agent names none; Blade wants a number."""
SEND_SHARE = 32
"""New text leaves at once if it is a 32nd of the turn, so that all patches together stay in proportion to the turn."""
PAUSE_SHARE = 1024
"""Less text waits for a pause, and leaves after the pause if it is a 1024th of the turn."""
PAUSE, LARGE_TURN = 0.05, 4096
"""The pause: 50 ms; longer, in proportion, in a turn of more than so many characters."""
SILENCE_SECONDS = 1.0
"""Even less text leaves when the agent is silent for so long; after each time, the silence must be twice as long."""
TurnStatus = m.SessionStatus | m.Outcome
"""Running, suspended, or an outcome."""


def with_prefix(prefix: str, own_id: str) -> str:
    """An id of ours under the prefix that Blade's clients know: `msg_1f` becomes `turn_1f`."""
    stem = own_id.partition("_")[2] if own_id.startswith(_OWN_PREFIXES) else own_id
    return own_id if own_id.startswith(f"{prefix}_") else f"{prefix}_{stem or own_id}"


_OWN_PREFIXES = ("msg_", "call_", "ask_", "cmd_", "cmp_", "scope_")


def wire_call_id(own_id: str) -> str:
    return with_prefix("tc", own_id)


@dataclass(slots=True)
class Loop:
    """An agent loop: that of the agent itself, or of a sub-agent with the call that started it."""

    loop_id: str = m.ROOT
    fork: str | None = None
    parent: str = m.ROOT
    title: str | None = None
    call_id: str = ""
    last_text: str = ""
    ended: m.StopReason | None = None


def make_loop(scope_id: str, parent: str, call_id: str | None, title: str | None) -> Loop:
    """A sub-agent that no call started gets a call with the id of its scope."""
    name = f"agent:{crc32(scope_id.encode()):08x}"
    return Loop(name, wire_call_id(call_id or scope_id), parent, title, call_id or scope_id)


@dataclass(slots=True)
class TurnBlock:
    """A piece of a turn; only text grows. The block of a call, or of its result, holds the call."""

    type: str
    content: Any
    call: "TurnCall | None" = None


@dataclass(slots=True)
class QuestionReference:
    """The question of a sub-agent that a call waits for."""

    loop_name: str
    call_id: str
    description: str | None = None


@dataclass(slots=True)
class TurnCall:
    """A tool call; one that asks a person has questions and, if a sub-agent asks, its loop."""

    id: str
    name: str
    title: str | None = None
    input: dict[str, Any] = field(default_factory=dict)
    questions: tuple[m.Question, ...] | None = None
    loop: Loop | None = None
    status: m.ToolStatus = m.ToolStatus.PENDING
    content: m.Content | None = None
    meta: dict[str, Any] | None = None
    duration_ms: int | None = None
    reference: QuestionReference | None = None
    over: bool = False
    is_synthetic: bool = False
    """Whether the call was made here, for a sub-agent that no call started."""

    @property
    def size(self) -> int:
        """About how many characters the call has on the wire."""
        return 200 + len(self.content if isinstance(self.content, str) else repr(self.content))


@dataclass(slots=True)
class TurnEntry:
    """One entry of the conversation in its current state."""

    key: str
    sequence: int
    loop: Loop
    scope_id: str
    role: m.Role
    started_at: float
    seq: int = 0
    state: TurnStatus = m.SessionStatus.RUNNING
    model: str | None = None
    context_window: int = CONTEXT_WINDOW
    usage: m.Usage | None = None
    duration_ms: int = 0
    blocks: list[TurnBlock] = field(default_factory=list)
    calls: dict[str, TurnCall] = field(default_factory=dict)
    memory_refs: object = None
    compaction: m.SessionCompacted | None = None
    archived: int = 0
    """How many turns a summary replaces."""
    failure: str | None = None
    patches: int = 0
    message_outcome: m.Outcome | None = None
    """The outcome of its message, once that has ended; its calls may still be open."""
    closed: bool = False
    ended_at: int = 0
    """How many patches its last `turn:end` includes."""
    growing: TurnBlock | None = None
    held: list[str] = field(default_factory=list)
    held_size: int = 0
    held_since: float = 0.0
    held_seq: int = 0
    is_much: bool = False
    """Whether the text held back is worth a patch at once."""
    is_worth_a_pause: bool = False
    """Whether the text held back is worth a patch after a pause."""
    due: float = 0.0
    """When the text held back leaves in any case."""
    size: int = 0
    stalls: int = 0
    """How often text left that was hardly worth a patch."""
    id: str = field(init=False)
    turn_id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id, self.turn_id = with_prefix("entry", self.key), with_prefix("turn", self.key)

    @property
    def is_waiting(self) -> bool:
        """Whether a call has not returned."""
        return any(not call.over for call in self.calls.values())

    @property
    def was_cancelled(self) -> bool:
        return any(call.status is m.ToolStatus.CANCELLED for call in self.calls.values())

    @property
    def text(self) -> str:
        return "".join([block.content for block in self.blocks if block.type == m.BlockKind.TEXT])

    def hold(self, kind: str, text: str, seq: int, at: float) -> None:
        """Hold text back until it is much, or due."""
        if self.growing is None or self.growing.type != kind:
            self.growing = TurnBlock(kind, "")
            self.blocks.append(self.growing)
        if not self.held:
            self.held_since = at
        self.held.append(text)
        self.held_size += len(text)
        self.held_seq = seq
        self.is_much = self.held_size * SEND_SHARE >= self.size
        self.is_worth_a_pause = self.held_size * PAUSE_SHARE >= self.size
        pause = PAUSE * (1 + self.size // LARGE_TURN)
        if not self.is_worth_a_pause:
            pause = max(pause, SILENCE_SECONDS * 2**self.stalls)
        self.due = self.held_since + pause

    def release(self) -> str:
        """The text that was held back, which is now part of its block."""
        text, block = "".join(self.held), self.growing
        assert block is not None
        block.content += text
        self.size += self.held_size
        self.held, self.held_size = [], 0
        return text

    def add(self, block: TurnBlock) -> None:
        self.blocks.append(block)
        self.growing = None
        self.size += 200 + len(repr(block.content))


@dataclass(slots=True)
class ChatRun:
    """From a `chat:send` to where the agent yields; a canonical turn has one chat or more."""

    run_id: str
    headless: bool = False
    schema: dict[str, Any] | None = None


class OpenTurns:
    """The state of one session that its projections share: the chat, and all that can still change in it."""

    def __init__(self) -> None:
        self.entries = 0
        self.positions: list[int] = []
        """The place in the log of each turn of the conversation."""
        self.holding: list[TurnEntry] = []
        """The turns that hold text back."""
        self.chat: ChatRun | None = None
        self.is_running = False
        """Whether the chat has begun and not yet ended or paused."""
        self.last_text = ""
        self.has_failed_tool = False
        """Whether the error of a tool is the last thing that the agent got."""
        self.reset()

    def reset(self) -> None:
        """Forget what belongs to a canonical turn, because it has ended."""
        self.turns: dict[str, TurnEntry] = {}
        self.callers: dict[str, TurnEntry] = {}
        self.calls: dict[str, TurnCall] = {}
        self.loops: dict[str, Loop] = {m.ROOT: Loop()}

    def newest_first(self) -> list[TurnEntry]:
        """The turns of sub-agents before those that wait for them."""
        return list(self.turns.values())[::-1]


HTTP_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
"""The beginning of an address that a browser loads."""


def blocks_of_parts(parts: Iterable[m.AnyPart]) -> list[TurnBlock]:
    """The content of a person's message; Blade's turns have text only, so images and files are named."""
    return [block for part in parts if (block := _block_of_part(part)) is not None]


def _block_of_part(part: m.AnyPart) -> TurnBlock | None:
    match part:
        case m.TextPart(text=text):
            return TurnBlock(BlockType.TEXT, text) if text else None
        case m.ImagePart(url=url):
            return TurnBlock(BlockType.TEXT, "![image](data:)" if url.startswith("data:") else m.image_markdown(part))
        case m.FilePart(name=name):
            return TurnBlock(BlockType.TEXT, f"[{name}]")
    return None


def data_block(kind: str, content: JsonValue, call: TurnCall | None) -> TurnBlock:
    """A block of a type that Blade does not know becomes a notification."""
    if kind in BLOCK_TYPES:
        return TurnBlock(kind, content, call)
    return TurnBlock(BlockType.SYSTEM_NOTIFICATION, content if isinstance(content, str) else kind, call)


def page_meta(meta: JsonObject | None) -> JsonObject | None:
    """What a result hands to the page, without a card that a browser would run instead of load (`javascript:`)."""
    card = (meta or {}).get("ui")
    address = card.get("resourceUri") if isinstance(card, dict) else None
    if not meta or not address or (isinstance(address, str) and HTTP_ADDRESS.match(address)):
        return meta
    return {word: value for word, value in meta.items() if word != "ui"}


def meta_blocks(call: TurnCall) -> Iterator[TurnBlock]:
    """What a result hands to the page, once per call."""
    for word, kind in (("bridge", BlockType.TOOL_BRIDGE), ("ui", BlockType.TOOL_UI)):
        if isinstance(content := (call.meta or {}).get(word), dict):
            yield TurnBlock(kind, content, call)
