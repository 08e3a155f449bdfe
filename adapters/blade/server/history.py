"""What was said in a session, and what Blade keeps beside it, for handlers that have no socket."""

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from itertools import pairwise
from math import inf
from typing import Any

import gateway.model as m
from adapters.blade.server import history
from gateway.http import Context, encode_array
from gateway.json_values import EncodedArray
from gateway.time_slices import SLICE_ITEMS, one_at_a_time, sliced
from gateway.time_slices import next_slice as turn_of_work
from mappings.language import Table

from .session_projection import SessionProjection
from .turn_state import TurnEntry
from .views import turn_body

RECORDS_PER_PAGE = 512


async def message_bodies(
    context: Context, owner: str, session_id: str, *, upto: int | None = None, waits_with: str | None = None,
) -> EncodedArray:
    """Every turn that stands, as it was after that record; one is read at a time for the owner, or `waits_with`."""
    async with one_at_a_time(waits_with or owner):
        return await history.messages_body(context.table, record_pages(context, owner, session_id, upto))


async def record_pages(
    context: Context, owner: str, session_id: str, upto: int | None = None,
) -> AsyncIterator[Sequence[m.Record]]:
    """The records of a session up to that one, a page at a time: a long log is never in memory as a whole."""
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
    context: Context, owner: str, session_id: str, title: str | None = None, /, **kept: Any,
) -> m.SessionView:
    """Put something beside the session that is Blade's alone; everybody who watches is told."""
    view = await context.sessions.get(owner, session_id)
    ours = view.private(context.dialect) | kept
    private = view.metadata.get(m.PRIVATE, {}) | {context.dialect: ours}
    return await context.sessions.update(owner, session_id, title=title, metadata={**view.metadata, m.PRIVATE: private})


async def turns_of(pages: AsyncIterable[Sequence[m.Record]]) -> list[TurnEntry]:
    """All turns of a session, as they are by now."""
    ledger, turns = SessionProjection(), list[TurnEntry]()
    async for records in pages:
        async for some in sliced(records):
            for record in some:
                await _project(ledger, record, turns)
    for _ in ledger.flush(inf):
        pass
    return turns


async def _project(ledger: SessionProjection, record: m.Record, turns: list[TurnEntry]) -> None:
    if isinstance(record.event, m.SessionRewound):
        while turns and turns[-1].seq > record.event.to_seq:
            turns.pop()
    before = len(turns)
    for cue in ledger.project(record):
        if cue.turn is not None and cue.name == "turn.opened":
            turns.append(cue.turn)
            if (len(turns) - before) % SLICE_ITEMS == 0:  # a session may begin with thousands of messages
                await turn_of_work()


async def messages_body(table: Table, pages: AsyncIterable[Sequence[m.Record]]) -> EncodedArray:
    """What GET …/messages answers with, each message encoded already."""
    return await encode_array(_listed(table, told) for told in await turns_of(pages))


def _listed(table: Table, told: TurnEntry) -> Any:
    shape = "turn.compaction.listed" if told.compaction else "turn.listed"
    return table.object(shape, turn=turn_body(table, told), failure=told.failure)


async def history_body(table: Table, pages: AsyncIterable[Sequence[m.Record]], model: str | None) -> Any:
    """The turns as nodes, each under the one before it."""
    turns = await turns_of(pages)
    parents = {after.id: before.id for before, after in pairwise(turns)}
    nodes = await encode_array(
        table.object("history.node", turn=turn_body(table, told), parent=parents.get(told.id)) for told in turns)
    return table.object("history", nodes=nodes, model=model)
