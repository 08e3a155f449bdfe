"""What the projector of CAS remembers of a turn: the event of each call, ask, message and block."""

from dataclasses import dataclass, field

import gateway.model as m
from gateway.ports import NO_FRAMES, Frame, Frames


@dataclass(frozen=True, slots=True)
class AnswerableAsk:
    """An ask, the event that a client answers, and the scope that asks."""

    event_id: str
    ask: m.AnyAsk
    scope_id: str


@dataclass(slots=True)
class MessageSpan:
    """A message in progress: the event that began it, how many blocks it has, and the frames that wait for its end."""

    event_id: str
    blocks: int = 0
    held: list[Frame] = field(default_factory=list)


@dataclass(slots=True)
class PreviewedBlock:
    """A block in progress: where it began, its index in its message, and whether a preview has announced it."""

    event_id: str
    seq: int
    index: int
    is_announced: bool = False


class TurnState:
    """The calls, asks, messages, blocks and sub-agents of the current turn; the next turn begins with none of them."""

    def __init__(self) -> None:
        self.calls: dict[str, str] = {}
        self.servers: dict[str, str] = {}
        self.asks: dict[str, AnswerableAsk] = {}
        self.spans: dict[str, MessageSpan] = {}
        self.blocks: dict[str, PreviewedBlock] = {}
        self.scopes: dict[str, tuple[str, str]] = {}
        """The name and the parent of each sub-agent."""
        self.blocked: dict[str, m.Record] = {}
        """The sub-agents that are blocked and have not asked yet."""
        self.usage = m.Usage()

    def reset(self) -> None:
        for known in (self.calls, self.servers, self.asks, self.spans, self.blocks, self.scopes, self.blocked):
            known.clear()
        self.usage = m.Usage()

    def start_message(self, message_id: str, event_id: str) -> None:
        self.spans[message_id] = MessageSpan(event_id)

    def end_message(self, event: m.MessageEnded) -> tuple[str | None, Frames]:
        """The event that began the message, and the frames that were held until now."""
        self.usage += event.usage
        span = self.spans.pop(event.message_id, None)
        return (span.event_id, tuple(span.held)) if span else (None, NO_FRAMES)

    def start_block(self, event: m.BlockStarted, record: m.Record) -> PreviewedBlock:
        """A block of data has no event, so it takes no index from the blocks after it."""
        span = self.spans[event.message_id]
        block = self.blocks[event.block_id] = PreviewedBlock(record.event_id, record.seq, span.blocks)
        span.blocks += event.kind is not m.BlockKind.DATA
        return block

    def end_block(self, event: m.BlockEnded) -> PreviewedBlock:
        block = self.blocks.pop(event.block_id)
        if event.call is not None and not event.torn:
            self.calls[event.call.call_id] = block.event_id
            if event.call.origin is m.ToolOrigin.MCP:
                self.servers[event.call.call_id] = event.call.server or event.call.name
        return block

    def hold(self, message_id: str, frames: Frames) -> Frames:
        """Keep the frames until their message ends."""
        self.spans[message_id].held += frames
        return NO_FRAMES
