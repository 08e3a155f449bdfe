"""What must be remembered of a turn to tell of it: which event stands for a call, an ask, a message or a block."""

from dataclasses import dataclass, field

from gateway.model import AnyAsk, BlockEnded, BlockKind, BlockStarted, MessageEnded, Record, ToolOrigin, Usage

from .previews import SILENCE, Block, Frames


@dataclass(frozen=True, slots=True)
class Pending:
    """An ask, the event that a client answers, and whose ask it is."""

    event_id: str
    ask: AnyAsk
    scope_id: str


@dataclass(slots=True)
class Span:
    """A message that is being written: the event that began it, how many blocks it has, and what waits for its end."""

    event_id: str
    blocks: int = 0
    held: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class TurnState:
    """Everything here is over when the turn is."""

    calls: dict[str, str] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    asks: dict[str, Pending] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    scopes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The name and the parent of each sub-agent."""
    blocked: dict[str, Record] = field(default_factory=dict)
    """The sub-agents that wait and have not said for what."""
    usage: Usage = field(default_factory=Usage)

    def start_message(self, message_id: str, event_id: str) -> None:
        self.spans[message_id] = Span(event_id)

    def end_message(self, event: MessageEnded) -> tuple[str | None, Frames]:
        """The event that began the message, and what was held until now."""
        self.usage += event.usage
        span = self.spans.pop(event.message_id, None)
        return (span.event_id, tuple(span.held)) if span else (None, SILENCE)

    def start_block(self, event: BlockStarted, record: Record) -> Block:
        """Blocks of data are not told at all, and have no place among the others."""
        span = self.spans[event.message_id]
        block = self.blocks[event.block_id] = Block(record.event_id, record.seq, span.blocks)
        span.blocks += event.kind is not BlockKind.DATA
        return block

    def end_block(self, event: BlockEnded) -> Block:
        block = self.blocks.pop(event.block_id)
        if event.call is not None and not event.torn:
            self.calls[event.call.call_id] = block.event_id
            if event.call.origin is ToolOrigin.MCP:
                self.servers[event.call.call_id] = event.call.server or event.call.name
        return block

    def hold(self, message_id: str, frames: Frames) -> Frames:
        self.spans[message_id].held += frames
        return SILENCE
