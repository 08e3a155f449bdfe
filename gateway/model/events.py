"""What can happen in a session: one tagged union of frozen events, named in the past tense.

Every event knows its `name` (the word tables use) and, where one name covers several looks, its `variant`.
"""

from typing import Any, ClassVar, Self

from msgspec import Struct

from gateway.json_values import JsonObject, JsonValue

from .asks import ASKS, AnyAsk
from .commands import COMMANDS, AnyCommand
from .content import Content, DataPart, Fault, ImagePart, SeedMessage, Settings, ToolCall, Usage
from .enums import (
    AnnotationTopic,
    BlockKind,
    CloseReason,
    CompactionTrigger,
    NoticeLevel,
    Outcome,
    Resolution,
    Role,
    ScopeStatus,
    StopReason,
    ToolOrigin,
    ToolStatus,
)


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", gc=False):
    """Something that happened."""

    name: ClassVar[str]
    variants: ClassVar[tuple[str, ...]] = ()

    @property
    def variant(self) -> str:
        """Which of `variants` this is; empty where there are none."""
        return ""

    def __deepcopy__(self, memo: object) -> Self:
        """An event never changes, so copies of what remembers it share it."""
        return self


# -- the session ------------------------------------------------------------------------------------------------------

class SessionCreated(Event, frozen=True, kw_only=True, tag="session.created"):
    name: ClassVar[str] = "session.created"
    agent: str
    owner: str = ""
    title: str | None = None
    metadata: JsonObject = {}
    settings: Settings = Settings()
    history: tuple[SeedMessage, ...] = ()


class SessionUpdated(Event, frozen=True, kw_only=True, tag="session.updated"):
    """A change of the session; a field that is None did not change."""

    name: ClassVar[str] = "session.updated"
    title: str | None = None
    metadata: dict[str, Any] | None = None
    settings: Settings | None = None
    agent: str | None = None


class SessionCompacted(Event, frozen=True, kw_only=True, tag="session.compacted"):
    name: ClassVar[str] = "session.compacted"
    compaction_id: str
    summary: str
    preview: str | None = None
    archived: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    trigger: CompactionTrigger = CompactionTrigger.AUTO


class SessionRewound(Event, frozen=True, kw_only=True, tag="session.rewound"):
    """The records after `to_seq` are hidden from people and from the agent; the log keeps them."""

    name: ClassVar[str] = "session.rewound"
    to_seq: int
    reason: str | None = None


class SessionClosed(Event, frozen=True, kw_only=True, tag="session.closed"):
    name: ClassVar[str] = "session.closed"
    variants: ClassVar[tuple[str, ...]] = tuple(CloseReason)
    reason: CloseReason

    @property
    def variant(self) -> str:
        return self.reason


# -- what people say and settle ---------------------------------------------------------------------------------------

class InputAccepted(Event, frozen=True, kw_only=True, tag="input.accepted"):
    name: ClassVar[str] = "input.accepted"
    variants: ClassVar[tuple[str, ...]] = tuple(c.kind for c in COMMANDS)
    command_id: str
    command: AnyCommand

    @property
    def variant(self) -> str:
        return self.command.kind


class InputRequested(Event, frozen=True, kw_only=True, tag="input.requested"):
    name: ClassVar[str] = "input.requested"
    variants: ClassVar[tuple[str, ...]] = tuple(a.kind for a in ASKS)
    request_id: str
    ask: AnyAsk
    call_id: str | None = None
    expires_at: float | None = None

    @property
    def variant(self) -> str:
        return self.ask.kind


class InputResolved(Event, frozen=True, kw_only=True, tag="input.resolved"):
    name: ClassVar[str] = "input.resolved"
    variants: ClassVar[tuple[str, ...]] = tuple(Resolution)
    request_id: str
    resolution: Resolution
    call_id: str | None = None

    @property
    def variant(self) -> str:
        return self.resolution


# -- the turn ---------------------------------------------------------------------------------------------------------

class TurnStarted(Event, frozen=True, kw_only=True, tag="turn.started"):
    name: ClassVar[str] = "turn.started"
    command_id: str
    trace: str | None = None
    """The trace of the turn and its span, as a header `traceparent`; None where telemetry is off."""
    trace_parent: str | None = None
    """The id of the client's span, if the client sent one."""
    agent: str | None = None
    """The agent that runs the turn, if `route` has moved it from the agent of the session."""


class TurnSuspended(Event, frozen=True, kw_only=True, tag="turn.suspended"):
    """The turn waits for people; it keeps its id."""

    name: ClassVar[str] = "turn.suspended"
    pending: tuple[str, ...]


class TurnResumed(Event, frozen=True, kw_only=True, tag="turn.resumed"):
    """Every ask is settled and the turn goes on."""

    name: ClassVar[str] = "turn.resumed"
    settled: tuple[str, ...] = ()


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn.ended"):
    name: ClassVar[str] = "turn.ended"
    variants: ClassVar[tuple[str, ...]] = tuple(Outcome)
    outcome: Outcome
    stop_reason: StopReason
    fault: Fault | None = None
    result: Any = None
    usage: Usage = Usage()
    duration_ms: int = 0

    @property
    def variant(self) -> str:
        return self.outcome


# -- messages and blocks ----------------------------------------------------------------------------------------------

class MessageStarted(Event, frozen=True, kw_only=True, tag="message.started"):
    """A model request was issued; its first token may be long in coming."""

    name: ClassVar[str] = "message.started"
    message_id: str
    role: Role = Role.ASSISTANT
    model: str | None = None
    context_window: int | None = None


class MessageAnnotated(Event, frozen=True, kw_only=True, tag="message.annotated"):
    name: ClassVar[str] = "message.annotated"
    variants: ClassVar[tuple[str, ...]] = tuple(AnnotationTopic)
    message_id: str
    topic: AnnotationTopic
    content: JsonValue = None

    @property
    def variant(self) -> str:
        return self.topic


class MessageEnded(Event, frozen=True, kw_only=True, tag="message.ended"):
    name: ClassVar[str] = "message.ended"
    message_id: str
    outcome: Outcome = Outcome.COMPLETED
    stop_reason: StopReason = StopReason.END_TURN
    usage: Usage = Usage()
    duration_ms: int = 0


class BlockStarted(Event, frozen=True, kw_only=True, tag="block.started"):
    name: ClassVar[str] = "block.started"
    variants: ClassVar[tuple[str, ...]] = tuple(BlockKind)
    block_id: str
    message_id: str
    kind: BlockKind
    call: ToolCall | None = None

    @property
    def variant(self) -> str:
        return self.kind


class BlockDelta(Event, frozen=True, kw_only=True, tag="block.delta"):
    name: ClassVar[str] = "block.delta"
    variants: ClassVar[tuple[str, ...]] = (BlockKind.TEXT, BlockKind.THINKING, BlockKind.TOOL_USE)
    block_id: str
    message_id: str
    kind: BlockKind
    delta: str

    @property
    def variant(self) -> str:
        return self.kind


class BlockEnded(Event, frozen=True, kw_only=True, tag="block.ended"):
    """The whole block; its deltas add up to `text`, or to the JSON of `call.input`.

    A call whose input never became whole is `torn`: nobody may carry it out, and history does not keep it.
    """

    name: ClassVar[str] = "block.ended"
    variants: ClassVar[tuple[str, ...]] = (*BlockKind, "torn")
    block_id: str
    message_id: str
    kind: BlockKind
    text: str | None = None
    signature: str | None = None
    call: ToolCall | None = None
    image: ImagePart | None = None
    data: DataPart | None = None
    torn: bool = False

    @property
    def variant(self) -> str:
        return "torn" if self.torn else self.kind


# -- tool calls -------------------------------------------------------------------------------------------------------

class ToolStatusChanged(Event, frozen=True, kw_only=True, tag="tool.status"):
    name: ClassVar[str] = "tool.status"
    variants: ClassVar[tuple[str, ...]] = tuple(ToolStatus)
    call_id: str
    status: ToolStatus

    @property
    def variant(self) -> str:
        return self.status


class ToolOutput(Event, frozen=True, kw_only=True, tag="tool.output"):
    """A piece of what a running tool prints; the result that follows is authoritative."""

    name: ClassVar[str] = "tool.output"
    call_id: str
    delta: str


class ToolReturned(Event, frozen=True, kw_only=True, tag="tool.returned"):
    """A call is over. `origin` is the call's, so that a reader need not remember it."""

    name: ClassVar[str] = "tool.returned"
    variants: ClassVar[tuple[str, ...]] = tuple(ToolOrigin)
    call_id: str
    content: Content = ""
    is_error: bool = False
    origin: ToolOrigin = ToolOrigin.BUILTIN
    duration_ms: int | None = None
    meta: JsonObject | None = None

    @property
    def variant(self) -> str:
        return self.origin


# -- sub-agents -------------------------------------------------------------------------------------------------------

class ScopeOpened(Event, frozen=True, kw_only=True, tag="scope.opened"):
    """A sub-agent took up work; the record's scope is the new one."""

    name: ClassVar[str] = "scope.opened"
    parent: str
    call_id: str | None = None
    agent: str | None = None
    title: str | None = None
    role: str = "child"


class ScopeStatusChanged(Event, frozen=True, kw_only=True, tag="scope.status"):
    name: ClassVar[str] = "scope.status"
    variants: ClassVar[tuple[str, ...]] = tuple(ScopeStatus)
    status: ScopeStatus
    stop_reason: StopReason | None = None

    @property
    def variant(self) -> str:
        return self.status


class ScopeMessage(Event, frozen=True, kw_only=True, tag="scope.message"):
    """One agent wrote to another."""

    name: ClassVar[str] = "scope.message"
    sender: str
    recipient: str
    content: Content
    is_error: bool = False


# -- the rest ---------------------------------------------------------------------------------------------------------

class FaultRaised(Event, frozen=True, kw_only=True, tag="fault.raised"):
    name: ClassVar[str] = "fault.raised"
    fault: Fault


class NoticePosted(Event, frozen=True, kw_only=True, tag="notice.posted"):
    name: ClassVar[str] = "notice.posted"
    topic: str
    title: str
    level: NoticeLevel = NoticeLevel.INFO
    detail: JsonValue = None


class CustomEvent(Event, frozen=True, kw_only=True, tag="custom"):
    name: ClassVar[str] = "custom"
    topic: str
    payload: JsonObject = {}


AnyEvent = (
    SessionCreated | SessionUpdated | SessionCompacted | SessionRewound | SessionClosed
    | InputAccepted | InputRequested | InputResolved
    | TurnStarted | TurnSuspended | TurnResumed | TurnEnded
    | MessageStarted | MessageAnnotated | MessageEnded
    | BlockStarted | BlockDelta | BlockEnded
    | ToolStatusChanged | ToolOutput | ToolReturned
    | ScopeOpened | ScopeStatusChanged | ScopeMessage
    | FaultRaised | NoticePosted | CustomEvent
)

EVENTS: tuple[type[Event], ...] = (
    SessionCreated, SessionUpdated, SessionCompacted, SessionRewound, SessionClosed,
    InputAccepted, InputRequested, InputResolved,
    TurnStarted, TurnSuspended, TurnResumed, TurnEnded,
    MessageStarted, MessageAnnotated, MessageEnded,
    BlockStarted, BlockDelta, BlockEnded,
    ToolStatusChanged, ToolOutput, ToolReturned,
    ScopeOpened, ScopeStatusChanged, ScopeMessage,
    FaultRaised, NoticePosted, CustomEvent,
)
