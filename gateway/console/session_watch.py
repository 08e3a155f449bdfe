"""The list of sessions, live: a snapshot, and then every row that has changed.

The list is looked at once a second, as any client could do it: the newest sessions, and those in which a turn runs or
waits, whatever their age.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence

from aiohttp import web
from msgspec import Struct

import gateway.model as m
from gateway.errors import NotFound
from gateway.http import OWNER, dumps, stream_sse
from gateway.ports import Chunk, Frame, SessionService

from .operations import SSE, Operation
from .services import ConsoleServices
from .session_rows import SessionRow, row_of

NEWEST, MOST_ACTIVE = 50, 200
"""How many of the newest sessions are followed, and how many in which a turn runs or waits."""
LOOK_SECONDS = 1.0


class SessionSnapshot(Struct, kw_only=True):
    """The newest sessions and the active ones; newest first."""

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
        """The rows of now: of the newest sessions, of active ones, and of those that were followed already."""
        heads = await self._sessions.heads(self._owner, limit=NEWEST)
        active = (await self._sessions.active(self._owner))[:MOST_ACTIVE]
        rows: dict[str, SessionRow] = {}
        for head in heads:
            known = self._rows.get(head.session_id)
            if known is not None and known.head == head.head:
                rows[head.session_id] = self._watched(known)
            elif (row := await self._row(head.session_id)) is not None:
                rows[head.session_id] = row
        for view in active:
            rows[view.session_id] = row_of(view, self._watchers(view.session_id))
        for session_id in self._rows.keys() - rows.keys():  # it was active, or others are newer now
            if (row := await self._row(session_id)) is not None:
                rows[session_id] = row
        while len(rows) > 2 * (NEWEST + MOST_ACTIVE):
            del rows[next(iter(rows))]
        return rows

    def _watched(self, row: SessionRow) -> SessionRow:
        row.watching = sorted(self._watchers(row.session_id))
        return row

    async def _row(self, session_id: str) -> SessionRow | None:
        try:
            view = await self._sessions.get(self._owner, session_id)
        except NotFound:
            return None
        return row_of(view, self._watchers(session_id)) if view.closed is not m.CloseReason.DELETED else None

    async def _changes(self) -> list[Frame]:
        before = {session_id: dumps(row) for session_id, row in self._rows.items()}
        self._rows = await self._read()
        changed = [row for session_id, row in self._rows.items() if before.get(session_id) != dumps(row)]
        gone = [RemovedSession(session_id=session_id) for session_id in before.keys() - self._rows.keys()]
        return [*(_event("session", row) for row in changed), *(_event("removed", one) for one in gone)]


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
