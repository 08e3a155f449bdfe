"""The list of sessions, live: a snapshot, and then every row that has changed.

The list is looked at once a second, as any client could do it: the sessions that changed last, and those in which a
turn runs or waits.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence

from aiohttp import web
from msgspec import Struct

import gateway.model as m
from gateway.errors import NotFound
from gateway.http import OWNER, dumps, stream_sse
from gateway.ports import Chunk, Frame, SessionFilter, SessionService

from .operations import SSE, ConsoleServices, Operation
from .session_rows import SessionRow, row_of

LATEST, MOST_ACTIVE = 50, 200
"""How many of the sessions that changed last are followed, and how many in which a turn runs or waits."""
LOOK_SECONDS = 1.0


class SessionSnapshot(Struct, kw_only=True):
    """The sessions that changed last, and the active ones; the last change first."""

    sessions: list[SessionRow]


class RemovedSession(Struct, kw_only=True):
    session_id: str


class SessionListSubscription:
    """One reader of the list; it has the interface of a subscription, so that it is written as any stream is."""

    cut_at: int | None = None

    def __init__(
        self, owner: str, sessions: SessionService, watchers: Callable[[str], Collection[str]],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._owner, self._sessions, self._watchers, self._is_stopping = owner, sessions, watchers, is_stopping
        self._rows: dict[str, SessionRow] = {}
        self._seen: dict[str, m.SessionSummary] = {}
        self._is_new, self._is_open = True, True

    @property
    def is_draining(self) -> bool:
        return self._is_stopping()

    async def chunks(self) -> Sequence[Chunk]:
        """The snapshot at first; then wait until something has changed."""
        if self._is_new:
            self._is_new = False
            self._rows = await self._read()
            return _chunk([_event("snapshot", SessionSnapshot(sessions=list(self._rows.values())))])
        while self._is_open and not self._is_stopping():
            await asyncio.sleep(LOOK_SECONDS)
            if events := await self._changes():
                return _chunk(events)
        return ()

    def cut(self) -> None:
        self.close()

    def close(self) -> None:
        self._is_open = False

    async def _read(self) -> dict[str, SessionRow]:
        """The rows of now: of the sessions that changed last, of active ones, and of those that were followed already.

        Only sessions whose summary has changed are opened.
        """
        listed, _ = await self._sessions.find(self._owner, SessionFilter(), order="updated", limit=LATEST)
        active = (await self._sessions.active(self._owner))[:MOST_ACTIVE]
        rows: dict[str, SessionRow] = {}
        for one in listed:
            known = self._rows.get(one.session_id)
            if known is not None and self._seen.get(one.session_id) == one.summary:
                rows[one.session_id] = known
            elif (row := await self._row(one.session_id)) is not None:
                rows[one.session_id] = row
        self._seen = {one.session_id: one.summary for one in listed}
        for view in active:
            rows[view.session_id] = row_of(view)
        for session_id in self._rows.keys() - rows.keys():  # it was active, was deleted, or others have changed since
            if (row := await self._row(session_id)) is not None:
                rows[session_id] = row
        for row in rows.values():
            row.watching = sorted(self._watchers(row.session_id))
        kept = sorted(rows.values(), key=lambda row: -row.updated_at)[:LATEST + MOST_ACTIVE]
        return {row.session_id: row for row in kept}

    async def _row(self, session_id: str) -> SessionRow | None:
        try:
            view = await self._sessions.get(self._owner, session_id)
        except NotFound:
            return None
        return row_of(view) if view.closed is not m.CloseReason.DELETED else None

    async def _changes(self) -> list[Frame]:
        before = {session_id: dumps(row) for session_id, row in self._rows.items()}
        self._rows = await self._read()
        changed = [row for session_id, row in self._rows.items() if before.get(session_id) != dumps(row)]
        gone = [RemovedSession(session_id=session_id) for session_id in await self._removed(before)]
        return [*(_event("session", row) for row in changed), *(_event("removed", one) for one in gone)]

    async def _removed(self, before: Collection[str]) -> list[str]:
        """The sessions that are gone; one that only others have overtaken is not."""
        return [session_id for session_id in before if session_id not in self._rows
                and await self._row(session_id) is None]


def _event(name: str, data: object) -> Frame:
    return Frame(b"event: %b\ndata: %b\n\n" % (name.encode(), dumps(data)), name)


def _chunk(events: list[Frame]) -> Sequence[Chunk]:
    return (Chunk(0, tuple(events), False),)


class SessionWatchRoutes:
    """The stream of the list."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [Operation(
            method="GET", path="/sessions/stream", handler=self.stream, media_type=SSE,
            events={"snapshot": SessionSnapshot, "session": SessionRow, "removed": RemovedSession},
            summary="Follow the list of sessions: a snapshot, and then every row that has changed.",
        )]

    async def stream(self, request: web.Request) -> web.StreamResponse:
        services, owner = self._services, request[OWNER]
        services.check_open()
        with services.sessions.reserve_stream(owner):
            followed = SessionListSubscription(owner, services.sessions, services.watchers, services.is_stopping)
            try:
                return await stream_sse(
                    request, followed, heartbeat=services.heartbeat(), patience=services.send_timeout())
            finally:
                followed.close()
