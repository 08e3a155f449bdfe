"""What is told of a message while it is being written, and never kept: previews, or the raw stream."""

from dataclasses import dataclass
from typing import Protocol

import gateway.model as m
from adapters.cas.wire import PreviewedType

from .stream_options import StreamOptions

Frames = tuple[bytes, ...]
NO_FRAMES: Frames = ()
RAW_KINDS = (m.BlockKind.TEXT, m.BlockKind.THINKING, m.BlockKind.TOOL_USE)
EVENT_OF_KIND: dict[m.BlockKind, PreviewedType] = {
    m.BlockKind.TEXT: "agent.message",
    m.BlockKind.THINKING: "agent.thinking",
}
"""What a block of this kind will be when it is whole."""

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


class WritePreview(Protocol):
    """The projector's voice."""

    def __call__(self, cue: str, record: m.Record, final_id: str, **names: object) -> Frames: ...


@dataclass(slots=True)
class PreviewedBlock:
    """A block that is being written: where it began, its place in its message, and whether anything was told of it."""

    event_id: str
    seq: int
    index: int
    told: bool = False


class NoPreviews:
    """Events only, each when it is whole."""

    def __init__(self, reading: StreamOptions, say: WritePreview) -> None:
        self.reading = reading
        self.say = say

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

    def muted(self, record: m.Record, block: PreviewedBlock) -> bool:
        """Whether the client has had this already; what it has not had is told from there on."""
        muted = self.reading.muted
        return muted is not None and block.seq == muted[0] and record.seq <= muted[1]


class EventDeltaPreviews(NoPreviews):
    """`event_deltas[]`: an event announced when its first word comes, and word by word from then on."""

    def delta(self, record: m.Record, event: m.BlockDelta, block: PreviewedBlock) -> Frames:
        kind = EVENT_OF_KIND.get(event.kind)
        if kind not in self.reading.deltas or not event.delta:
            return NO_FRAMES
        first, block.told = not block.told, True
        if self.muted(record, block):
            return NO_FRAMES
        started = self.say("preview.started", record, block.event_id, type=kind) if first else NO_FRAMES
        return (*started, *self.say("preview.delta", record, block.event_id, delta=event.delta))


class RawPreviews(NoPreviews):
    """`incremental_streaming_enabled`: messages, blocks and deltas in Anthropic's form."""

    def message_started(self, record: m.Record, event: m.MessageStarted) -> Frames:
        return self.say("raw.message_start", record, "", message_id=event.message_id, model=event.model or "")

    def started(self, record: m.Record, event: m.BlockStarted, block: PreviewedBlock) -> Frames:
        if event.kind not in RAW_KINDS or self.muted(record, block):
            return NO_FRAMES
        names = {"name": event.call.name} if event.call else {}
        return self.say(f"raw.start.{event.kind}", record, block.event_id, index=block.index, **names)

    def delta(self, record: m.Record, event: m.BlockDelta, block: PreviewedBlock) -> Frames:
        if self.muted(record, block):
            return NO_FRAMES
        return self.say(f"raw.delta.{event.kind}", record, block.event_id, index=block.index, delta=event.delta)

    def ended(self, record: m.Record, event: m.BlockEnded, block: PreviewedBlock) -> Frames:
        if event.image is not None:
            return self._picture(record, event.image, block)
        if event.kind not in RAW_KINDS or self.muted(record, block):
            return NO_FRAMES
        return self.say("raw.stop", record, block.event_id, index=block.index)

    def _picture(self, record: m.Record, image: m.ImagePart, block: PreviewedBlock) -> Frames:
        """A picture is words of its message, and comes all at once."""
        if self.muted(record, block):
            return NO_FRAMES
        cues: tuple[tuple[str, dict[str, str]], ...] = (
            ("raw.start.text", {}), ("raw.delta.text", {"delta": m.image_markdown(image)}), ("raw.stop", {}),
        )
        told = (self.say(cue, record, block.event_id, index=block.index, **names) for cue, names in cues)
        return tuple(frame for frames in told for frame in frames)

    def message_ended(self, record: m.Record, event: m.MessageEnded) -> Frames:
        delta = self.say("raw.message_delta", record, "", stop_reason=event.stop_reason, usage=event.usage)
        return (*delta, *self.say("raw.message_stop", record, ""))


def make_previews(reading: StreamOptions, say: WritePreview) -> NoPreviews:
    if reading.deltas:
        return EventDeltaPreviews(reading, say)
    return (RawPreviews if reading.raw else NoPreviews)(reading, say)
