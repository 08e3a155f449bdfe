"""How a projector of CAS speaks: what it says under which id, about which thread, and what its reading leaves out.

What must be remembered of a turn to tell of it: which event stands for a call, an ask, a message or a block.
"""

from dataclasses import dataclass, field

import gateway.model as m
from mappings.language import Table

from .previews import NO_FRAMES, Frames, PreviewedBlock
from .stream_options import StreamOptions, preview_id, thread_id_of


class FrameWriter:
    """One reading of a session; everything it remembers belongs to the turn."""

    def __init__(self, table: Table, options: StreamOptions) -> None:
        self.options = options
        self.speaker = table.encoder("json" if options.as_list else "sse")
        self.turn = TurnState()
        self._passed = (0, 0)

    def write(self, record: m.Record, cue: str = "", event_id: str | None = None, thread: str | None = None,
             **names: object) -> Frames:
        """An event that is kept; `thread` names the thread it is about, the record's own unless said otherwise."""
        event_id = event_id or record.event_id
        if thread is None and record.scope_id != m.ROOT:
            thread = thread_id_of(record.session_id, record.scope_id)
        extra = {"id": event_id, "thread_id": thread, **names}
        return self.speaker.cue(cue, record, extra) if cue else self.speaker.record(record, extra)

    def write_preview(self, cue: str, record: m.Record, final_id: str, **names: object) -> Frames:
        """Something that is never kept, about the event that will have that id; its own id is a place to resume at."""
        seq, count = self._passed
        self._passed = (record.seq, count + 1 if seq == record.seq else 1)
        thread = None if record.scope_id == m.ROOT else thread_id_of(record.session_id, record.scope_id)
        own_id = preview_id(record.event_id, self._passed[1])
        return self.speaker.cue(cue, record, {"id": own_id, "thread_id": thread, "final_id": final_id, **names})

    def is_visible(self, *scopes: str, words: bool = False) -> bool:
        """Whether this reading has what belongs to these scopes; the words of sub-agents stay in their threads."""
        if self.options.thread is not None:
            return self.options.thread in scopes
        return not words or m.ROOT in scopes

    def write_if_visible(self, record: m.Record, event: m.Event) -> Frames:
        return self.write(record) if self.is_visible(record.scope_id) else NO_FRAMES


@dataclass(frozen=True, slots=True)
class AnswerableAsk:
    """An ask, the event that a client answers, and whose ask it is."""

    event_id: str
    ask: m.AnyAsk
    scope_id: str


@dataclass(slots=True)
class MessageSpan:
    """A message that is being written: the event that began it, how many blocks it has, and what waits for its end."""

    event_id: str
    blocks: int = 0
    held: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class TurnState:
    """Everything here is over when the turn is."""

    calls: dict[str, str] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    asks: dict[str, AnswerableAsk] = field(default_factory=dict)
    spans: dict[str, MessageSpan] = field(default_factory=dict)
    blocks: dict[str, PreviewedBlock] = field(default_factory=dict)
    scopes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The name and the parent of each sub-agent."""
    blocked: dict[str, m.Record] = field(default_factory=dict)
    """The sub-agents that wait and have not said for what."""
    usage: m.Usage = field(default_factory=m.Usage)

    def start_message(self, message_id: str, event_id: str) -> None:
        self.spans[message_id] = MessageSpan(event_id)

    def end_message(self, event: m.MessageEnded) -> tuple[str | None, Frames]:
        """The event that began the message, and what was held until now."""
        self.usage += event.usage
        span = self.spans.pop(event.message_id, None)
        return (span.event_id, tuple(span.held)) if span else (None, NO_FRAMES)

    def start_block(self, event: m.BlockStarted, record: m.Record) -> PreviewedBlock:
        """Blocks of data are not told at all, and have no place among the others."""
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
        self.spans[message_id].held += frames
        return NO_FRAMES
