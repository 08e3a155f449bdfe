"""Records in, events of CAS out, for a list or for a stream. No clock, no socket."""

import gateway.model as m
from gateway import ports
from gateway.ports import NO_FRAMES, DialectTable, Frames
from mappings.language import ProjectorBase, Step

from . import ask_projection, previews, thread_projection
from .ask_projection import AskProjection
from .frame_writer import FrameWriter
from .previews import make_previews
from .stream_options import StreamOptions
from .thread_projection import ThreadProjection
from .turn_state import PreviewedBlock, TurnState

CUES = {
    "said.text": ("text",),
    "said.thinking": ("text",),
    "call.builtin": ("call",),
    "call.provider": ("call",),
    "call.mcp": ("call", "server"),
    "call.client": ("call",),
    "call.question": ("call", "how_to_answer"),
    "artifact.delivered": ("file",),
    **ask_projection.ASK_CUES,
    **thread_projection.THREAD_CUES,
    **previews.PREVIEW_CUES,
}
NAMES = {
    "*": ("id", "thread_id"),
    "session.updated": ("shown",),
    "turn.suspended": ("blocking", "usage"),
    "message.ended": ("span_id", "is_error"),
    "tool.returned": ("answers", "server"),
    **ask_projection.ASK_NAMES,
    **thread_projection.THREAD_NAMES,
}


def make_projector(table: DialectTable, options: ports.StreamOptions) -> ports.Projector:
    assert isinstance(options, StreamOptions), "a dialect gets options of its own kind"
    projector = Projector(table, options)
    return projector if options.past is None else ResumedProjector(projector, options.past)


class Projector(ProjectorBase):
    """One step for each type of event; an event without a step of its own is written as it is."""

    def __init__(self, table: DialectTable, options: StreamOptions) -> None:
        self.options = options
        self.writer = FrameWriter(table, options)
        self.turn = TurnState()
        self.asks = AskProjection(self.writer, self.turn)
        self.threads = ThreadProjection(self.writer, self.turn)
        self.previews = make_previews(options, self.writer)
        self._steps = self._make_steps()

    def _make_steps(self) -> dict[type[m.Event], Step]:
        steps: dict[type[m.Event], Step] = {
            **dict.fromkeys(m.EVENTS, self.writer.write_if_visible),
            m.SessionUpdated: self._session_updated,
            m.TurnStarted: self._turn_started,
            m.TurnSuspended: self._turn_suspended,
            m.InputAccepted: self.asks.accepted,
            m.InputRequested: self.asks.requested,
            m.InputResolved: self.asks.resolved,
            m.MessageStarted: self._message_started,
            m.MessageEnded: self._message_ended,
            m.BlockStarted: self._block_started,
            m.BlockDelta: self._block_delta,
            m.BlockEnded: self._block_ended,
            m.ToolReturned: self._tool_returned,
            m.ScopeOpened: self.threads.opened,
            m.ScopeStatusChanged: self.threads.status_changed,
            m.ScopeMessage: self.threads.message,
        }
        if type(self.previews) is previews.NoPreviews:
            del steps[m.BlockDelta]
        return steps

    # -- the session and its turns --------------------------------------------------------------------------------

    def _session_updated(self, record: m.Record, event: m.SessionUpdated) -> Frames:
        if (event.title is None and event.metadata is None) or not self.writer.is_visible(record.scope_id):
            return NO_FRAMES
        shown = None if event.metadata is None else m.public_metadata(event.metadata)
        return self.writer.write(record, shown=shown)

    def _turn_started(self, record: m.Record, event: m.TurnStarted) -> Frames:
        self.turn.reset()
        return self.writer.write_if_visible(record, event)

    def _turn_suspended(self, record: m.Record, event: m.TurnSuspended) -> Frames:
        asks = self.turn.asks
        blocking = [asks[request_id].event_id for request_id in event.pending if request_id in asks]
        released = self.threads.release_blocked(record)
        if not self.writer.is_visible(record.scope_id):
            return released
        return (*released, *self.writer.write(record, blocking=blocking, usage=self.turn.usage))

    # -- messages -------------------------------------------------------------------------------------------------

    def _message_started(self, record: m.Record, event: m.MessageStarted) -> Frames:
        self.turn.start_message(event.message_id, record.event_id)
        if not self.writer.is_visible(record.scope_id, text=True):
            return NO_FRAMES
        return (*self.previews.message_started(record, event), *self.writer.write(record))

    def _message_ended(self, record: m.Record, event: m.MessageEnded) -> Frames:
        span_id, held = self.turn.end_message(event)
        if not self.writer.is_visible(record.scope_id, text=True):
            return NO_FRAMES
        raw = self.previews.message_ended(record, event)
        ended = self.writer.write(record, span_id=span_id, is_error=event.outcome is m.Outcome.FAILED)
        return (*raw, *held, *ended)

    def _block_started(self, record: m.Record, event: m.BlockStarted) -> Frames:
        block = self.turn.start_block(event, record)
        is_visible = self.writer.is_visible(record.scope_id, text=True)
        return self.previews.started(record, event, block) if is_visible else NO_FRAMES

    def _block_delta(self, record: m.Record, event: m.BlockDelta) -> Frames:
        is_visible = self.writer.is_visible(record.scope_id, text=True)
        return self.previews.delta(record, event, self.turn.blocks[event.block_id]) if is_visible else NO_FRAMES

    def _block_ended(self, record: m.Record, event: m.BlockEnded) -> Frames:
        block = self.turn.end_block(event)
        is_visible = self.writer.is_visible(record.scope_id, text=True)
        stop = self.previews.ended(record, event, block) if is_visible else NO_FRAMES
        if event.kind is m.BlockKind.TOOL_USE:
            return (*stop, *self._call(record, event, block))
        return (*stop, *self._text(record, event, block)) if is_visible else stop

    def _text(self, record: m.Record, event: m.BlockEnded, block: PreviewedBlock) -> Frames:
        text = m.image_markdown(event.image) if event.image is not None else event.text
        if not text:
            return NO_FRAMES
        if event.kind is m.BlockKind.THINKING:
            return self.writer.write(record, "said.thinking", event_id=block.event_id, text=text)
        frames = self.writer.write(record, "said.text", event_id=block.event_id, text=text)
        return self.turn.hold(event.message_id, frames) if self.options.incremental else frames

    # -- tools ----------------------------------------------------------------------------------------------------

    def _call(self, record: m.Record, event: m.BlockEnded, block: PreviewedBlock) -> Frames:
        if event.torn or event.call is None or not self.writer.is_visible(record.scope_id):
            return NO_FRAMES
        call, event_id = event.call, block.event_id
        if m.is_question_call(call):
            return self.writer.write(
                record, "call.question", event_id=event_id, call=call, how_to_answer=m.HOW_TO_ANSWER)
        server = call.server or call.name
        return self.writer.write(record, f"call.{call.origin}", event_id=event_id, call=call, server=server)

    def _tool_returned(self, record: m.Record, event: m.ToolReturned) -> Frames:
        answers, server = self.turn.calls.pop(event.call_id, None), self.turn.servers.pop(event.call_id, None)
        if answers is None or not self.writer.is_visible(record.scope_id):
            return NO_FRAMES
        files = [part for part in m.parts_of(event.content) if isinstance(part, m.FilePart) and part.file_id]
        delivered = [
            frame for number, file in enumerate(files, 1)
            for frame in self.writer.write(
                record, "artifact.delivered", event_id=f"{record.event_id}-{number}", file=file)
        ]
        return (*delivered, *self.writer.write(record, answers=answers, server=server))


class ResumedProjector(ProjectorBase):
    """A projector for a client that has had some events of one record: of that record it gives only the others."""

    def __init__(self, projector: Projector, past: tuple[int, str]) -> None:
        self._projector = projector
        self._seq, self._event_id = past

    def feed(self, record: m.Record) -> Frames:
        frames = self._projector.feed(record)
        return frames if record.seq != self._seq else _frames_after(frames, self._event_id)


def _frames_after(frames: Frames, event_id: str) -> Frames:
    """The frames that follow the event of that id."""
    places = [at for at, frame in enumerate(frames) if frame.cursor == event_id]
    return frames[places[-1] + 1:] if places else frames
