"""How a record became frames, or why it did not: the rows that made each frame, and the row that is empty."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

import gateway.model as m
from gateway.ports import CueEncoder, Frame, FrameCursor, Frames, Framing, TableEncoder
from mappings.language import FEATURES, LOST_LEVELS, Table, feature_of

HELD_FRAMES = 512
"""How many frames that a projector holds back are remembered; of older ones the row is not known any more."""
SUBAGENTS = "subagents"
HELD_BACK = "held back: joined with what follows"
WITHOUT_FRAME: dict[type[m.Event], str] = {
    m.BlockStarted: "sent with the content of the block",
    m.BlockDelta: "sent when the block is complete",
    m.BlockEnded: "sent as its deltas",
}
"""Why an event of a block may have no frame, if the table does not say it."""


class Silence(Struct, frozen=True, kw_only=True):
    """Why there is no frame: the empty row and its line, the feature that is lost with it, and the reason in words."""

    note: str
    cue: str | None = None
    line: int | None = None
    feature: str | None = None
    level: str | None = None


class SilenceNotes:
    """The reasons of one table; each is made once."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._known: dict[tuple[str, str, str | None], Silence] = {}

    def silence(self, record: m.Record, silent: Sequence[str], *, is_held: bool = False) -> Silence:
        """Why the record has no frame; `silent` are the cues with empty rows that were raised for it."""
        event = record.event
        if is_held and type(event) is m.BlockDelta:
            return Silence(note=HELD_BACK)
        feature = self._feature(record)
        cue = silent[0] if silent else self.table.cue_of(type(event), event.variant)
        key = (cue, event.variant, feature)
        if key not in self._known:
            self._known[key] = self._made(cue, event, feature, is_empty=bool(silent) or self.table.silent(event))
        return self._known[key]

    def _feature(self, record: m.Record) -> str | None:
        """The lost feature: events of a sub-agent are lost where sub-agents are."""
        feature = feature_of(record.event)
        if feature is None and record.scope_id != m.ROOT and self.table.support[SUBAGENTS] in LOST_LEVELS:
            return SUBAGENTS
        return feature

    def _made(self, cue: str, event: m.Event, feature: str | None, *, is_empty: bool) -> Silence:
        rows = self.table.rows
        place = rows.position(cue) or rows.event_position(event.name, event.variant)
        level = self.table.support[feature] if feature is not None else None
        lost = f"{level}: {self._loss(feature)}" if feature is not None and level in LOST_LEVELS else ""
        note = lost or rows.comment(cue) or rows.comment(event.name, "events") or WITHOUT_FRAME.get(type(event))
        if not note:
            note = f"{self.table.dialect} has no frame for {cue}" if is_empty else (
                f"{self.table.dialect} has no frame for this {cue}")
        return Silence(cue=cue, line=place.line if place else None, feature=feature, level=level, note=note)

    def _loss(self, feature: str) -> str:
        return self.table.notes.get(feature) or f"{self.table.dialect} has no word for: {FEATURES[feature].meaning}"


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
