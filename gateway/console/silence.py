"""Why a dialect says nothing for a record: in the words of its table, with the row that is empty."""

from collections.abc import Sequence

from msgspec import Struct

import gateway.model as m
from mappings.language import FEATURES, LOST_LEVELS, Table, feature_of

SUBAGENTS = "subagents"
HELD_BACK = "held back: joined with what follows"
SAID_ELSEWHERE: dict[type[m.Event], str] = {
    m.BlockStarted: "said with the content of the block",
    m.BlockDelta: "said when the block is whole",
    m.BlockEnded: "said by its deltas",
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
        """Why nothing is said for the record; `silent` are the cues with empty rows that were raised for it."""
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
        """The lost feature: what a sub-agent says is lost where sub-agents are."""
        feature = feature_of(record.event)
        if feature is None and record.scope_id != m.ROOT and self.table.support[SUBAGENTS] in LOST_LEVELS:
            return SUBAGENTS
        return feature

    def _made(self, cue: str, event: m.Event, feature: str | None, *, is_empty: bool) -> Silence:
        rows = self.table.rows
        place = rows.position(cue) or rows.event_position(event.name, event.variant)
        level = self.table.support[feature] if feature is not None else None
        lost = f"{level}: {self._loss(feature)}" if feature is not None and level in LOST_LEVELS else ""
        note = lost or rows.comment(cue) or rows.comment(event.name, "events") or SAID_ELSEWHERE.get(type(event))
        if not note:
            note = f"{self.table.dialect} has no frame for {cue}" if is_empty else (
                f"{self.table.dialect} has no frame for this {cue}")
        return Silence(cue=cue, line=place.line if place else None, feature=feature, level=level, note=note)

    def _loss(self, feature: str) -> str:
        return self.table.notes.get(feature) or f"{self.table.dialect} has no word for: {FEATURES[feature].meaning}"
