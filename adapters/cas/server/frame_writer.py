"""Writes the events of CAS: their ids, the threads they are about, and which of them a client may see."""

import gateway.model as m
from gateway.ports import NO_FRAMES, DialectTable, Frame, Frames

from .stream_options import StreamOptions, preview_id, thread_id_of


class ListedFrame(Frame, frozen=True, gc=False):
    """An event as it stands in a list, and the time that it shows: lists can be filtered by it."""

    at: float = 0.0


class FrameWriter:
    """Writes frames for one client, as its stream options want them; the id of an event is the cursor of its frame."""

    def __init__(self, table: DialectTable, options: StreamOptions) -> None:
        self.options = options
        self._encoder = table.encoder("json" if options.as_list else "sse")
        self._previewed = (0, 0)
        """The record that was previewed last, and how many previews it has."""

    def write(
        self, record: m.Record, cue: str = "", *, event_id: str | None = None, thread: str | None = None,
        **names: object,
    ) -> Frames:
        """The frames of a stored event; `thread` is the thread of the event, if that is not the record's own."""
        if thread is None and record.scope_id != m.ROOT:
            thread = thread_id_of(record.session_id, record.scope_id)
        event_id = event_id or record.event_id
        bindings = {"id": event_id, "thread_id": thread, **names}
        encoder = self._encoder
        frames = encoder.cue(cue, record, bindings, event_id) if cue else encoder.record(record, bindings, event_id)
        if self.options.as_list:
            return tuple([ListedFrame(frame.body, frame.name, frame.cursor, record.at) for frame in frames])
        return frames

    def write_preview(self, cue: str, record: m.Record, final_id: str, **names: object) -> Frames:
        """The frames of a preview of the event `final_id`. No preview is stored, but streams can resume after one."""
        seq, count = self._previewed
        self._previewed = (record.seq, count + 1 if seq == record.seq else 1)
        thread = None if record.scope_id == m.ROOT else thread_id_of(record.session_id, record.scope_id)
        own_id = preview_id(record.event_id, self._previewed[1])
        bindings = {"id": own_id, "thread_id": thread, "final_id": final_id, **names}
        return self._encoder.cue(cue, record, bindings, own_id)

    def write_if_visible(self, record: m.Record, event: m.Event) -> Frames:
        return self.write(record) if self.is_visible(record.scope_id) else NO_FRAMES

    def is_visible(self, *scopes: str, text: bool = False) -> bool:
        """Whether the client sees what belongs to one of these scopes; text of sub-agents stays in their threads."""
        if self.options.thread is not None:
            return self.options.thread in scopes
        return not text or m.ROOT in scopes
