"""The turns of a session as its log has them, and the private data that Blade keeps with the session."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Any

import gateway.model as m
from adapters.blade.wire import BladeSettings
from gateway.http import Context, Row, encode_array
from gateway.json_values import EncodedArray
from gateway.ports import DialectTable
from gateway.time_slices import one_at_a_time, sliced

from .session_projection import SessionProjection
from .turn_projection import NO_NAMES
from .turn_state import OpenTurns, TurnEntry
from .views import turn_body

RECORDS_PER_PAGE = 512


MESSAGE = (Row("turn.listed", turn="turn"), Row("turn.compaction.listed", turn="turn.compaction"))
"""The shapes of a message in a list."""


async def message_bodies(
    context: Context[BladeSettings], owner: str, session_id: str, *, upto: int | None = None,
    waits_with: str | None = None,
) -> EncodedArray:
    """Every turn that was not rewound, as it was after that record; an owner, or `waits_with`, reads one at a time."""
    async with one_at_a_time(waits_with or owner):
        return await messages_body(context.table, record_pages(context, owner, session_id, upto))


async def record_pages(
    context: Context[BladeSettings], owner: str, session_id: str, upto: int | None = None,
) -> AsyncIterator[Sequence[m.Record]]:
    """The records of a session up to that one, a page at a time, so that a long log is never in memory as a whole."""
    after = 0
    while upto is None or after < upto:
        limit = RECORDS_PER_PAGE if upto is None else min(RECORDS_PER_PAGE, upto - after)
        records = await context.sessions.records(owner, session_id, after, limit)
        if records:
            yield records
            after = records[-1].seq
        if len(records) < limit:
            return


async def update_private(
    context: Context[BladeSettings], owner: str, session_id: str, title: str | None = None, /, **kept: object,
) -> m.SessionView:
    """Store private data of Blade with the session; every subscriber gets the change."""
    view = await context.sessions.get(owner, session_id)
    ours = view.private(context.dialect) | kept
    private = view.metadata.get(m.PRIVATE, {}) | {context.dialect: ours}
    return await context.sessions.update(owner, session_id, title=title, metadata={**view.metadata, m.PRIVATE: private})


class TurnCollector:
    """Keeps the turns that are opened, in their order."""

    def __init__(self) -> None:
        self.turns: list[TurnEntry] = []

    def write(
        self, cue: str, turn: TurnEntry | None = None, names: Mapping[str, Any] = NO_NAMES, seq: int = 0,
    ) -> None:
        if cue == "turn.opened" and turn is not None:
            self.turns.append(turn)


async def turns_of(pages: AsyncIterable[Sequence[m.Record]]) -> list[TurnEntry]:
    """All turns of a session in their current state."""
    collector = TurnCollector()
    session, turns = SessionProjection(OpenTurns(), collector), collector.turns
    async for records in pages:
        async for some in sliced(records):
            for record in some:
                event = record.event
                if isinstance(event, m.SessionCreated):  # it may have thousands of messages
                    async for messages in sliced(event.history):
                        session.write_history(record, messages)
                    continue
                if isinstance(event, m.SessionRewound):
                    while turns and turns[-1].seq > event.to_seq:
                        turns.pop()
                session.project(record)
    session.flush(inf)
    return turns


async def messages_body(table: DialectTable, pages: AsyncIterable[Sequence[m.Record]]) -> EncodedArray:
    """The body of GET …/messages, each message already encoded."""
    return await encode_array(_listed(table, turn) for turn in await turns_of(pages))


def _listed(table: DialectTable, turn: TurnEntry) -> object:
    shape = "turn.compaction.listed" if turn.compaction else "turn.listed"
    return table.object(shape, turn=turn_body(table, turn), failure=turn.failure)


async def history_body(table: DialectTable, pages: AsyncIterable[Sequence[m.Record]], model: str | None) -> object:
    """The turns as nodes, each below the one before it."""
    turns = await turns_of(pages)
    parents = {after.id: before.id for before, after in pairwise(turns)}
    nodes = await encode_array(
        table.object("history.node", turn=turn_body(table, entry), parent=parents.get(entry.id)) for entry in turns)
    return table.object("history", nodes=nodes, model=model)
