"""Lists of sessions: chooses the shortest list of the log that has all wanted sessions, and filters its rows."""

from collections.abc import Sequence

from msgspec.structs import replace

import gateway.model as m
from gateway.ports import EventLog, ListedSession, ListOrder, SessionFilter
from gateway.time_slices import next_slice

ROWS_PER_PAGE = 2000
"""How many rows of a list are read at once, if each must be looked at."""


class SessionLists:
    """Finds the sessions that fit a filter, newest first."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def find(
        self, owner: str, wanted: SessionFilter, order: ListOrder, offset: int, limit: int,
    ) -> tuple[Sequence[ListedSession], int]:
        """The rows from `offset` on, and how many sessions fit in all."""
        searched = wanted.text or wanted.title  # titles are among the texts
        if searched and (mentioned := await self._log.mentioning(owner, searched)) is not None:
            rest = replace(wanted, title=wanted.title.casefold())
            fitting = [row for row in mentioned if _fits(row.summary, rest)]
            if order == "updated":
                fitting.sort(key=lambda row: (row.summary.updated_at, row.ordinal), reverse=True)
            return fitting[offset:offset + limit], len(fitting)
        sizes = {label: await self._log.count_listed(owner, label) for label in (*wanted.labels, m.EVERY_SESSION)}
        shortest = min(sizes, key=lambda label: sizes[label])
        total = sizes[shortest]
        rest = replace(
            wanted, labels=tuple(label for label in wanted.labels if label != shortest), title=wanted.title.casefold(),
            without=await self._refusable(owner, wanted),
        )
        if total and not (rest.labels or rest.without or rest.prefix or rest.title):
            return await self._log.listed(owner, shortest, order, offset=offset, limit=limit), total
        found = await self._filtered(owner, shortest, order, total, rest)
        return found[offset:offset + limit], len(found)

    async def _refusable(self, owner: str, wanted: SessionFilter) -> str | None:
        """The label that sessions must not have, unless no session is left out because of it."""
        if wanted.without is None:
            return None
        refused = await self._log.count_listed(owner, wanted.without)
        excepted = await self._log.count_listed(owner, wanted.unless) if refused and wanted.unless else 0
        return wanted.without if refused > excepted else None

    async def _filtered(
        self, owner: str, label: str, order: ListOrder, total: int, rest: SessionFilter,
    ) -> list[ListedSession]:
        """All rows of the list that fit; a session that moves while the list is read is not listed twice."""
        found: dict[int, ListedSession] = {}
        for start in range(0, total, ROWS_PER_PAGE):
            rows = await self._log.listed(owner, label, order, offset=start, limit=ROWS_PER_PAGE)
            found |= {row.ordinal: row for row in rows if _fits(row.summary, rest)}
            await next_slice()
        return list(found.values())


def _fits(summary: m.SessionSummary, rest: SessionFilter) -> bool:
    labels = summary.labels
    if rest.without in labels and rest.unless not in labels:
        return False
    return (
        all(label in labels for label in rest.labels)
        and (not rest.prefix or any(label.startswith(rest.prefix) for label in labels))
        and rest.title in (summary.title or "").casefold()
    )
