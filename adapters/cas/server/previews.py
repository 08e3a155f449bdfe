"""Frames of a message in progress, which are not stored: previews of events, or the raw stream."""

import gateway.model as m
from adapters.cas.wire import PreviewedType
from gateway.ports import NO_FRAMES, Frames

from .frame_writer import FrameWriter
from .stream_options import StreamOptions
from .turn_state import PreviewedBlock

RAW_KINDS = (m.BlockKind.TEXT, m.BlockKind.THINKING, m.BlockKind.TOOL_USE)
EVENT_OF_KIND: dict[m.BlockKind, PreviewedType] = {
    m.BlockKind.TEXT: "agent.message",
    m.BlockKind.THINKING: "agent.thinking",
}
"""The event that a block of this kind becomes when it has ended."""

PREVIEW_CUES = {
    "preview.started": ("final_id", "type"),
    "preview.delta": ("final_id", "delta"),
    "raw.message_start": ("message_id", "model"),
    "raw.start.text": ("index",),
    "raw.start.thinking": ("index",),
    "raw.start.tool_use": ("final_id", "index", "name"),
    "raw.delta.text": ("index", "delta"),
    "raw.delta.thinking": ("index", "delta"),
    "raw.delta.tool_use": ("index", "delta"),
    "raw.stop": ("index",),
    "raw.message_delta": ("stop_reason", "usage"),
    "raw.message_stop": (),
}


class NoPreviews:
    """The client gets complete events only."""

    def __init__(self, options: StreamOptions, writer: FrameWriter) -> None:
        self._options = options
        self._write = writer.write_preview

    def message_started(self, record: m.Record, event: m.MessageStarted) -> Frames:
        return NO_FRAMES

    def started(self, record: m.Record, event: m.BlockStarted, block: PreviewedBlock) -> Frames:
        return NO_FRAMES

    def delta(self, record: m.Record, event: m.BlockDelta, block: PreviewedBlock) -> Frames:
        return NO_FRAMES

    def ended(self, record: m.Record, event: m.BlockEnded, block: PreviewedBlock) -> Frames:
        return NO_FRAMES

    def message_ended(self, record: m.Record, event: m.MessageEnded) -> Frames:
        return NO_FRAMES

    def _is_muted(self, record: m.Record, block: PreviewedBlock) -> bool:
        """Whether the client had this preview before it resumed its stream."""
        muted = self._options.muted
        return muted is not None and block.seq == muted[0] and record.seq <= muted[1]


class EventDeltaPreviews(NoPreviews):
    """`event_deltas[]`: a preview announces an event at its first delta, and each delta is a preview."""

    def delta(self, record: m.Record, event: m.BlockDelta, block: PreviewedBlock) -> Frames:
        kind = EVENT_OF_KIND.get(event.kind)
        if kind not in self._options.deltas or not event.delta:
            return NO_FRAMES
        first, block.is_announced = not block.is_announced, True
        if self._is_muted(record, block):
            return NO_FRAMES
        started = self._write("preview.started", record, block.event_id, type=kind) if first else NO_FRAMES
        return (*started, *self._write("preview.delta", record, block.event_id, delta=event.delta))


class RawPreviews(NoPreviews):
    """`incremental_streaming_enabled`: messages, blocks and deltas in Anthropic's form."""

    def message_started(self, record: m.Record, event: m.MessageStarted) -> Frames:
        return self._write("raw.message_start", record, "", message_id=event.message_id, model=event.model or "")

    def started(self, record: m.Record, event: m.BlockStarted, block: PreviewedBlock) -> Frames:
        if event.kind not in RAW_KINDS or self._is_muted(record, block):
            return NO_FRAMES
        names = {"name": event.call.name} if event.call else {}
        return self._write(f"raw.start.{event.kind}", record, block.event_id, index=block.index, **names)

    def delta(self, record: m.Record, event: m.BlockDelta, block: PreviewedBlock) -> Frames:
        if self._is_muted(record, block):
            return NO_FRAMES
        return self._write(f"raw.delta.{event.kind}", record, block.event_id, index=block.index, delta=event.delta)

    def ended(self, record: m.Record, event: m.BlockEnded, block: PreviewedBlock) -> Frames:
        if event.image is not None:
            return self._image(record, event.image, block)
        if event.kind not in RAW_KINDS or self._is_muted(record, block):
            return NO_FRAMES
        return self._write("raw.stop", record, block.event_id, index=block.index)

    def _image(self, record: m.Record, image: m.ImagePart, block: PreviewedBlock) -> Frames:
        """An image is text of its message, in one delta."""
        if self._is_muted(record, block):
            return NO_FRAMES
        cues: tuple[tuple[str, dict[str, str]], ...] = (
            ("raw.start.text", {}), ("raw.delta.text", {"delta": m.image_markdown(image)}), ("raw.stop", {}),
        )
        return tuple(
            frame for cue, names in cues
            for frame in self._write(cue, record, block.event_id, index=block.index, **names)
        )

    def message_ended(self, record: m.Record, event: m.MessageEnded) -> Frames:
        delta = self._write("raw.message_delta", record, "", stop_reason=event.stop_reason, usage=event.usage)
        return (*delta, *self._write("raw.message_stop", record, ""))


def make_previews(options: StreamOptions, writer: FrameWriter) -> NoPreviews:
    if options.deltas:
        return EventDeltaPreviews(options, writer)
    return (RawPreviews if options.raw else NoPreviews)(options, writer)
