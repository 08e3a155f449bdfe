"""What a Blade turn is made of while it is being told: blocks, tool calls, loops, and the words held back.

What turns are made of, from what the house has: words, pictures and files named, cards and plans as they are.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import gateway.model as m
from adapters.blade.wire import BLOCK_TYPES, BlockType

CONTEXT_WINDOW = 200_000
"""What a turn says of its model where the agent says nothing; Blade wants a number."""
SEND_SHARE = 32
"""New words leave at once when they are a 32nd of the turn, so that all patches together stay in proportion to it."""
PAUSE_SHARE = 1024
"""Fewer words than that wait for a pause, and leave after it if they are a 1024th of the turn: whatever the pace."""
PAUSE, LARGE_TURN = 0.05, 4096
"""The pause: 50 ms; longer, in proportion, in a turn of more than so many characters."""
SILENCE_SECONDS = 1.0
"""What is less than that leaves when an agent falls silent; each time in a turn only after twice as long a silence."""
TurnStatus = m.SessionStatus | m.Outcome
"""Running, suspended, or how it came out."""


def with_prefix(prefix: str, house_id: str) -> str:
    """A house id under the prefix that Blade's readers know: `msg_1f` becomes `turn_1f`."""
    stem = house_id.partition("_")[2] if house_id.startswith(_OWN_PREFIXES) else house_id
    return house_id if house_id.startswith(f"{prefix}_") else f"{prefix}_{stem or house_id}"


_OWN_PREFIXES = ("msg_", "call_", "ask_", "cmd_", "cmp_", "scope_")


def wire_call_id(house_id: str) -> str:
    return with_prefix("tc", house_id)


@dataclass(slots=True)
class Loop:
    """Whose voice: the agent's own, or a sub-agent's with the call that brought it about."""

    loop_id: str = m.ROOT
    fork: str | None = None
    parent: str = m.ROOT
    title: str | None = None
    call_id: str = ""
    last_words: str = ""
    ended: m.StopReason | None = None


def make_loop(scope_id: str, parent: str, call_id: str | None, title: str | None) -> Loop:
    """A sub-agent that no call brought about gets one that is called as its scope is."""
    name = f"agent:{crc32(scope_id.encode()):08x}"
    return Loop(name, wire_call_id(call_id or scope_id), parent, title, call_id or scope_id)


@dataclass(slots=True)
class TurnBlock:
    """A piece of a turn; words grow, anything else is whole. The place of a call or its result holds the call."""

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
    """The agent did not make it: a sub-agent came without one."""

    @property
    def size(self) -> int:
        """About how much there is to write of it."""
        return 200 + len(self.content if isinstance(self.content, str) else repr(self.content))


@dataclass(slots=True)
class TurnEntry:
    """One entry of the conversation, as it is by now."""

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
    memory_refs: Any = None
    compaction: m.SessionCompacted | None = None
    archived: int = 0
    """How many turns a summary takes the place of."""
    failure: str | None = None
    patches: int = 0
    message_outcome: m.Outcome | None = None
    """How its message came out, once that is over; its calls may still be."""
    closed: bool = False
    ended_at: int = 0
    """How many patches its last end has taken in."""
    growing: TurnBlock | None = None
    held: list[str] = field(default_factory=list)
    held_size: int = 0
    held_since: float = 0.0
    held_seq: int = 0
    size: int = 0
    stalls: int = 0
    """How often words left that were hardly worth it."""

    @property
    def id(self) -> str:
        return with_prefix("entry", self.key)

    @property
    def turn_id(self) -> str:
        return with_prefix("turn", self.key)

    @property
    def waiting(self) -> bool:
        """Whether a call has not come back."""
        return any(not call.over for call in self.calls.values())

    @property
    def was_cancelled(self) -> bool:
        return any(call.status is m.ToolStatus.CANCELLED for call in self.calls.values())

    @property
    def text(self) -> str:
        return "".join(block.content for block in self.blocks if block.type == m.BlockKind.TEXT)

    # -- words ----------------------------------------------------------------------------------------------------

    def hold(self, kind: str, words: str, seq: int, at: float) -> None:
        """Take words in; they are told when it is time."""
        if self.growing is None or self.growing.type != kind:
            self.growing = TurnBlock(kind, "")
            self.blocks.append(self.growing)
        if not self.held:
            self.held_since = at
        self.held.append(words)
        self.held_size += len(words)
        self.held_seq = seq

    @property
    def is_much(self) -> bool:
        """Whether the words held back are worth a patch by themselves."""
        return self.held_size * SEND_SHARE >= self.size

    @property
    def is_worth_a_pause(self) -> bool:
        return self.held_size * PAUSE_SHARE >= self.size

    @property
    def due(self) -> float:
        """When the words held back leave in any case."""
        pause = PAUSE * (1 + self.size // LARGE_TURN)
        return self.held_since + (pause if self.is_worth_a_pause else max(pause, SILENCE_SECONDS * 2**self.stalls))

    def release(self) -> str:
        """The words that were held back, now part of their block."""
        words, block = "".join(self.held), self.growing
        assert block is not None
        block.content += words
        self.size += self.held_size
        self.held, self.held_size = [], 0
        return words

    def add(self, block: TurnBlock) -> None:
        self.blocks.append(block)
        self.growing = None
        self.size += 200 + len(repr(block.content))


def newest_first(turns: Iterable[TurnEntry]) -> list[TurnEntry]:
    """Those of sub-agents before those that wait for them."""
    return list(turns)[::-1]


HTTP_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
"""How the address of a page begins that a browser loads."""


def blocks_of_parts(parts: Iterable[m.AnyPart]) -> list[TurnBlock]:
    """What a person said; Blade's turns have words only, so pictures and files are named."""
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


def data_block(kind: str, content: Any, call: TurnCall | None) -> TurnBlock:
    """A piece of a kind that Blade does not know is told as a notification."""
    if kind in BLOCK_TYPES:
        return TurnBlock(kind, content, call)
    return TurnBlock(BlockType.SYSTEM_NOTIFICATION, content if isinstance(content, str) else kind, call)


def page_meta(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a result hands to the page, without a card that a browser would not load but run (`javascript:`)."""
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
