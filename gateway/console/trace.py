"""A table that remembers which of its rows made which frame; projectors work with it as with any other table."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import gateway.model as m
from gateway.ports import CueEncoder, Frame, FrameCursor, Frames, Framing, TableEncoder
from mappings.language import Table

HELD_FRAMES = 512
"""How many frames that a projector holds back are remembered; of older ones the row is not known any more."""


class MadeFrame(NamedTuple):
    """A frame as the table has made it: the cue, the place in the row, and the record that was projected then."""

    cue: str
    place: int
    frame: Frame
    seq: int


class FrameTrace:
    """What the encoders of one projector have made, and not yet given out."""

    def __init__(self) -> None:
        self.seq = 0
        """The record that is projected now."""
        self.silent: list[str] = []
        """The cues of this record whose rows are empty."""
        self._made: list[MadeFrame] = []

    def begin(self, seq: int) -> None:
        self.seq, self.silent = seq, []
        del self._made[:-HELD_FRAMES]

    def add(self, cue: str, frames: Frames) -> None:
        if not frames:
            self.silent.append(cue)
        self._made += [MadeFrame(cue, place, frame, self.seq) for place, frame in enumerate(frames)]

    def take(self, frame: Frame) -> MadeFrame | None:
        """Find the row of a frame that the projector gives out.

        A projector may put an id before the body of a frame, and makes another frame of it then.
        """
        for at, made in enumerate(self._made):
            ours = made.frame
            if ours is frame or (ours.name == frame.name and frame.body.endswith(ours.body)):
                return self._made.pop(at)
        return None


class TracedEncoder:
    """The frames of a table in one framing; each goes through the trace."""

    def __init__(self, encoder: TableEncoder, table: Table, trace: FrameTrace) -> None:
        self._encoder, self._table, self._trace = encoder, table, trace

    def record(
        self, record: m.Record, extra: Mapping[str, object] | None = None, cursor: FrameCursor = None
    ) -> Frames:
        event = record.event
        return self._traced(self._table.cue_of(type(event), event.variant), self._encoder.record(record, extra, cursor))

    def cue(
        self, name: str, record: m.Record | None, bindings: Mapping[str, object] | None = None,
        cursor: FrameCursor = None,
    ) -> Frames:
        return self._traced(name, self._encoder.cue(name, record, bindings, cursor))

    def cue_encoders(self, kind: type[m.Event]) -> Mapping[str, CueEncoder]:
        return {variant: self._traced_encoder(self._table.cue_of(kind, variant), encode)
                for variant, encode in self._encoder.cue_encoders(kind).items()}

    def _traced_encoder(self, cue: str, encode: CueEncoder) -> CueEncoder:
        def traced(record: Any, event: Any, extra: Mapping[str, Any], cursor: FrameCursor = None, /) -> Frames:
            return self._traced(cue, encode(record, event, extra, cursor))

        return traced

    def _traced(self, cue: str, frames: Frames) -> Frames:
        self._trace.add(cue, frames)
        return frames


class TracedTable:
    """A table whose encoders are traced; all else is the table's own."""

    def __init__(self, table: Table, trace: FrameTrace) -> None:
        self._table, self._trace = table, trace

    def encoder(self, framing: Framing) -> TracedEncoder:
        return TracedEncoder(self._table.encoder(framing), self._table, self._trace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


def rows_of_frames(trace: FrameTrace, frames: Iterable[Frame]) -> list[tuple[Frame, MadeFrame | None]]:
    """Each frame with the row that made it; None for a frame that the projector has made without the table."""
    return [(frame, trace.take(frame)) for frame in frames]
