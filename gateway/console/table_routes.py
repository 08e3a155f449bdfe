"""The operations about tables: what each dialect loses, what each event becomes, and translations on the spot."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

from aiohttp import web
from msgspec import Struct
from pydantic import Field

import gateway.model as m
from gateway.errors import NotFound
from gateway.http import WireModel, json_response, read_json
from gateway.json_values import JsonObject
from mappings.language import FEATURES, LEVEL_MEANINGS, LEVEL_SYMBOLS, Table, losses_between

from .columns import ColumnItem, RecordItem
from .operations import ConsoleServices, Operation
from .translator import ConsoleTranslator, TranslatedEvents


class ShownFeature(Struct, kw_only=True):
    name: str
    meaning: str


class LossCell(Struct, kw_only=True):
    """How well a dialect carries a feature, and why not better."""

    level: m.SupportLevel
    mark: str
    note: str
    line: int | None
    """The line of the table that says so."""


class LossPair(Struct, kw_only=True):
    """What is lost between an agent behind one dialect and a client of another."""

    agent: str
    client: str
    lost: list[str]
    degraded: list[str]


class LossGrid(Struct, kw_only=True):
    features: list[ShownFeature]
    dialects: list[str]
    cells: dict[str, dict[str, LossCell]]
    pairs: list[LossPair]


class ShownFrameRow(Struct, kw_only=True):
    """One frame of a row: how it goes out, what is known when it is read, and how much of it comes back."""

    out: str
    back: list[str]
    loss: str
    line: int | None


class ShownRow(Struct, kw_only=True):
    cue: str
    line: int | None
    frames: list[ShownFrameRow]
    note: str


class ShownEventRows(Struct, kw_only=True):
    """A canonical event, and the rows that say it; `by_cues` are rows that the dialect's code raises for it."""

    name: str
    rows: list[str]
    by_cues: list[str]
    note: str


class ShownTable(Struct, kw_only=True):
    dialect: str
    spec: str
    file: str
    text: str
    support: dict[str, m.SupportLevel]
    notes: dict[str, str]
    rows: list[ShownRow]
    events: list[ShownEventRows]


class TranslationToMake(WireModel):
    """Canonical events, or a frame of a dialect as it goes over the wire; several frames are lines of one text."""

    event: JsonObject | None = None
    events: Annotated[list[JsonObject], Field(max_length=200)] = Field(default_factory=list)
    dialect: Annotated[str, Field(max_length=100)] | None = None
    frame: Annotated[str, Field(max_length=1_000_000)] | JsonObject | None = None


class ShownTranslation(Struct, kw_only=True):
    """The events as records, and what each dialect makes of them; `added` are the records that were added.

    An event belongs into a message, a message into a turn: what is missing is added.
    """

    records: list[RecordItem]
    columns: dict[str, list[ColumnItem]]
    added: list[int]
    problems: list[str]


class TableRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services
        self._shown: dict[str, tuple[Table, ShownTable]] = {}

    def operations(self) -> list[Operation]:
        return [
            Operation(method="GET", path="/losses", handler=self.losses, answer=LossGrid,
                      summary="Show which features each dialect, and each pair of dialects, cannot carry."),
            Operation(method="GET", path="/tables/{dialect}", handler=self.table, answer=ShownTable,
                      summary="Show the table of a dialect: its text, and what each event becomes."),
            Operation(method="POST", path="/translate", handler=self.translate, body=TranslationToMake,
                      answer=ShownTranslation, summary="Translate canonical events, or frames, into every dialect."),
        ]

    async def losses(self, request: web.Request) -> web.Response:
        tables = self._services.parts().tables
        return json_response(LossGrid(
            features=[ShownFeature(name=name, meaning=feature.meaning) for name, feature in FEATURES.items()],
            dialects=[*tables],
            cells={name: {feature: _cell(table, feature) for feature in FEATURES} for name, table in tables.items()},
            pairs=[LossPair(agent=one, client=other, lost=lost, degraded=degraded)
                   for one in tables for other in tables
                   for lost, degraded in [losses_between(tables[one], tables[other])]],
        ))

    async def table(self, request: web.Request) -> web.Response:
        name, parts = request.match_info["dialect"], self._services.parts()
        table = parts.tables.get(name)
        if table is None:
            raise NotFound(f"there is no dialect '{name[:80]}'; there are {', '.join(parts.tables)}")
        known = self._shown.get(name)
        if known is None or known[0] is not table:
            shown = await asyncio.to_thread(_shown_table, table, parts.dialects[name].framings)
            known = self._shown[name] = (table, shown)
        return json_response(known[1])

    async def translate(self, request: web.Request) -> web.Response:
        body = await read_json(request, TranslationToMake)
        translator = ConsoleTranslator(self._services.parts(), self._services.columns, self._services.clock)
        events = [*([body.event] if body.event is not None else []), *body.events]
        made: TranslatedEvents
        if body.dialect is not None:
            made = await asyncio.to_thread(translator.from_frames, body.dialect, body.frame)
        else:
            made = await asyncio.to_thread(translator.from_events, events)
        return json_response({
            "records": made.records, "columns": made.columns, "added": made.added, "problems": made.problems})


def _cell(table: Table, feature: str) -> LossCell:
    level = table.support[feature]
    place = table.rows.support_position(feature)
    return LossCell(level=level, mark=LEVEL_SYMBOLS[level], line=place.line if place else None,
                    note=table.notes.get(feature) or LEVEL_MEANINGS.get(level, ""))


def _shown_table(table: Table, framings: tuple[Any, ...]) -> ShownTable:
    explained, rows = table.explanation(*framings), table.rows
    every = {row.cue: row for event in explained.events for row in event.rows}
    every |= {row.cue: row for row in explained.cues}
    shown = []
    for cue, row in every.items():
        place = rows.position(cue)
        shown.append(ShownRow(cue=cue, line=place.line if place else None, note=row.note, frames=[
            ShownFrameRow(out=frame.out, back=list(frame.back), loss=frame.loss, line=rows.frame_line(cue, number))
            for number, frame in enumerate(row.frames)
        ]))
    return ShownTable(
        dialect=table.dialect, spec=table.spec, file=f"mappings/{Path(rows.file).name}", text=rows.text,
        support=table.support, notes=table.notes, rows=shown,
        events=[ShownEventRows(name=event.name, rows=[row.cue for row in event.rows], by_cues=list(event.by_cues),
                               note=event.note) for event in explained.events],
    )
