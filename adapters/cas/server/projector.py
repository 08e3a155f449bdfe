"""CAS, outward: records in, events out, one by one as a list has them or as frames of a stream. No clock, no socket."""

from collections.abc import Callable
from typing import Any

import gateway.model as m
from mappings.language import Table

from . import ask_projection, previews, thread_projection
from .ask_projection import AskProjection
from .frame_writer import TurnState
from .previews import NO_FRAMES, Frames, PreviewedBlock, make_previews
from .stream_options import StreamOptions, decode_options
from .thread_projection import ThreadProjection

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


def make_projector(table: Table, options: str) -> "Projector":
    return Projector(table, decode_options(options))


class Projector(AskProjection, ThreadProjection):
    """One step for each kind of record; what has no step of its own is said as it is."""

    deadline: float | None = None

    def __init__(self, table: Table, reading: StreamOptions) -> None:
        super().__init__(table, reading)
        self.previews = make_previews(reading, self.write_preview)
        self._quiet = type(self.previews) is previews.NoPreviews

    def flush(self, now: float) -> Frames:
        return NO_FRAMES

    def feed(self, record: m.Record) -> Frames:
        kind = type(record.event)
        if kind is m.BlockDelta and self._quiet:
            return NO_FRAMES
        frames = _STEPS.get(kind, Projector.write_if_visible)(self, record, record.event)
        past = self.options.past
        return frames if past is None or record.seq != past[0] else _frames_after(frames, past[1])

    # -- the session and its turns --------------------------------------------------------------------------------

    def _updated(self, record: m.Record, event: m.SessionUpdated) -> Frames:
        if (event.title is None and event.metadata is None) or not self.is_visible(record.scope_id):
            return NO_FRAMES
        return self.write(record, shown=None if event.metadata is None else m.public_metadata(event.metadata))

    def _turn_started(self, record: m.Record, event: m.TurnStarted) -> Frames:
        self.turn = TurnState()
        return self.write_if_visible(record, event)

    def _suspended(self, record: m.Record, event: m.TurnSuspended) -> Frames:
        blocking = [self.turn.asks[request_id].event_id for request_id in event.pending if request_id in self.turn.asks]
        late = self._waits(record)
        if not self.is_visible(record.scope_id):
            return late
        return (*late, *self.write(record, blocking=blocking, usage=self.turn.usage))

    # -- messages -------------------------------------------------------------------------------------------------

    def _message_started(self, record: m.Record, event: m.MessageStarted) -> Frames:
        self.turn.start_message(event.message_id, record.event_id)
        if not self.is_visible(record.scope_id, words=True):
            return NO_FRAMES
        return (*self.previews.message_started(record, event), *self.write(record))

    def _message_ended(self, record: m.Record, event: m.MessageEnded) -> Frames:
        span_id, held = self.turn.end_message(event)
        if not self.is_visible(record.scope_id, words=True):
            return NO_FRAMES
        raw = self.previews.message_ended(record, event)
        ended = self.write(record, span_id=span_id, is_error=event.outcome is m.Outcome.FAILED)
        return (*raw, *held, *ended)

    def _block_started(self, record: m.Record, event: m.BlockStarted) -> Frames:
        block = self.turn.start_block(event, record)
        heard = self.is_visible(record.scope_id, words=True)
        return self.previews.started(record, event, block) if heard else NO_FRAMES

    def _delta(self, record: m.Record, event: m.BlockDelta) -> Frames:
        heard = self.is_visible(record.scope_id, words=True)
        return self.previews.delta(record, event, self.turn.blocks[event.block_id]) if heard else NO_FRAMES

    def _block_ended(self, record: m.Record, event: m.BlockEnded) -> Frames:
        block = self.turn.end_block(event)
        stop = self.previews.ended(record, event, block) if self.is_visible(record.scope_id, words=True) else NO_FRAMES
        return (*stop, *self._whole(record, event, block))

    def _whole(self, record: m.Record, event: m.BlockEnded, block: PreviewedBlock) -> Frames:
        if event.kind is m.BlockKind.TOOL_USE:
            return self._call(record, event, block)
        text = m.image_markdown(event.image) if event.image is not None else event.text
        if not text or not self.is_visible(record.scope_id, words=True):
            return NO_FRAMES
        if event.kind is m.BlockKind.THINKING:
            return self.write(record, "said.thinking", block.event_id, text=text)
        said = self.write(record, "said.text", block.event_id, text=text)
        return self.turn.hold(event.message_id, said) if self.options.incremental else said

    # -- tools ----------------------------------------------------------------------------------------------------

    def _call(self, record: m.Record, event: m.BlockEnded, block: PreviewedBlock) -> Frames:
        if event.torn or event.call is None or not self.is_visible(record.scope_id):
            return NO_FRAMES
        call = event.call
        if m.is_question_call(call):
            return self.write(record, "call.question", block.event_id, call=call, how_to_answer=m.HOW_TO_ANSWER)
        return self.write(record, f"call.{call.origin}", block.event_id, call=call, server=call.server or call.name)

    def _returned(self, record: m.Record, event: m.ToolReturned) -> Frames:
        answers, server = self.turn.calls.pop(event.call_id, None), self.turn.servers.pop(event.call_id, None)
        if answers is None or not self.is_visible(record.scope_id):
            return NO_FRAMES
        files = [part for part in m.parts_of(event.content) if isinstance(part, m.FilePart) and part.file_id]
        delivered = [
            frame for number, file in enumerate(files, 1)
            for frame in self.write(record, "artifact.delivered", f"{record.event_id}-{number}", file=file)
        ]
        return (*delivered, *self.write(record, answers=answers, server=server))


def _frames_after(frames: Frames, event_id: str) -> Frames:
    """The frames that follow the event of that id."""
    lead = f"id: {event_id}\n".encode()
    mark = f'"id":"{event_id}"'.encode()
    places = [at for at, frame in enumerate(frames) if frame.startswith(lead) or frame[:len(mark) + 1] == b"{" + mark]
    return frames[places[-1] + 1:] if places else frames


_STEPS: dict[type[m.Event], Callable[[Projector, m.Record, Any], Frames]] = {
    m.SessionUpdated: Projector._updated,
    m.TurnStarted: Projector._turn_started,
    m.TurnSuspended: Projector._suspended,
    m.InputAccepted: Projector._accepted,
    m.InputRequested: Projector._requested,
    m.InputResolved: Projector._resolved,
    m.MessageStarted: Projector._message_started,
    m.MessageEnded: Projector._message_ended,
    m.BlockStarted: Projector._block_started,
    m.BlockDelta: Projector._delta,
    m.BlockEnded: Projector._block_ended,
    m.ToolReturned: Projector._returned,
    m.ScopeOpened: Projector._scope_opened,
    m.ScopeStatusChanged: Projector._scope_changed,
    m.ScopeMessage: Projector._mail,
}
