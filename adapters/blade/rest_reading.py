"""What was said in a session, and what Blade keeps beside it, for handlers that have no socket."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from gateway.model import PRIVATE, Encoded, Record, SessionView
from gateway.time_slices import one_at_a_time
from gateway.web import Context

from . import views

PAGE = 512


async def messages_of(
    house: Context, owner: str, session_id: str, *, upto: int | None = None, waits_with: str | None = None,
) -> Encoded:
    """Every turn that stands, as it was after that record; one is read at a time for the owner, or `waits_with`."""
    async with one_at_a_time(waits_with or owner):
        return await views.messages(house.table, pages_of(house, owner, session_id, upto))


async def pages_of(
    house: Context, owner: str, session_id: str, upto: int | None = None,
) -> AsyncIterator[Sequence[Record]]:
    """The records of a session up to that one, a page at a time: a long log is never in memory as a whole."""
    after = 0
    while upto is None or after < upto:
        limit = PAGE if upto is None else min(PAGE, upto - after)
        records = await house.sessions.records(owner, session_id, after, limit)
        if records:
            yield records
            after = records[-1].seq
        if len(records) < limit:
            return


async def keep(
    house: Context, owner: str, session_id: str, title: str | None = None, /, **kept: Any,
) -> SessionView:
    """Put something beside the session that is Blade's alone; everybody who watches is told."""
    view = await house.sessions.get(owner, session_id)
    ours = view.private(house.dialect) | kept
    private = view.metadata.get(PRIVATE, {}) | {house.dialect: ours}
    return await house.sessions.update(owner, session_id, title=title, metadata={**view.metadata, PRIVATE: private})
