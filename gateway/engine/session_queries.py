"""The questions about sessions: get, list, find, subscribe, read; the sessions of other owners are not found."""

from collections.abc import AsyncIterator, Sequence

import gateway.model as m
from gateway.errors import NotFound, Overloaded
from gateway.ports import (
    NO_OPTIONS,
    Chunk,
    ListedSession,
    ListOrder,
    SessionFilter,
    SessionHead,
    StreamOptions,
    StreamSlot,
)
from gateway.time_slices import sliced

from .runtime import Runtime
from .session_cache import SessionSource, find_session
from .session_lists import SessionLists
from .streams import Cursor, Hub


class SessionQueries:
    """Answers questions about sessions, and changes none; nothing is shown that is not stored."""

    def __init__(self, runtime: Runtime, source: SessionSource, hub: Hub) -> None:
        self._runtime = runtime
        self._source = source
        self._hub = hub
        self._lists = SessionLists(runtime.log)

    async def get(self, owner: str, session_id: str) -> m.SessionView:
        return await self._source.stored_view(await find_session(self._source, owner, session_id))

    async def find_by_id(self, owner: str, word: str) -> m.SessionView:
        session_id = await self._runtime.log.session_of(word)
        session = await self._source.load(session_id) if session_id is not None else None
        if session is None or session.view.owner != owner:
            raise NotFound(f"there is nothing called '{word}'")
        return await self._source.stored_view(session)

    async def active(self, owner: str) -> Sequence[m.SessionView]:
        return await self._views(await self._runtime.log.sessions_in_turn(owner))

    async def _views(self, heads: Sequence[SessionHead]) -> list[m.SessionView]:
        views: list[m.SessionView] = []
        async for some in sliced(heads):
            found = [await self._source.load(head.session_id) for head in some]
            views += [await self._source.stored_view(session) for session in found if session is not None]
        return views

    async def list(
        self, owner: str, *, before: int | None = None, limit: int = 50,
    ) -> tuple[list[m.SessionView], int | None]:
        heads = await self._runtime.log.sessions(owner, before, limit + 1)
        more, heads = len(heads) > limit, heads[:limit]
        return await self._views(heads), heads[-1].ordinal if more else None

    async def find(
        self, owner: str, wanted: SessionFilter, *, order: ListOrder = "created", offset: int = 0, limit: int = 50,
    ) -> tuple[Sequence[ListedSession], int]:
        return await self._lists.find(owner, wanted, order, offset, limit)

    async def created_between(
        self, owner: str, first: float, last: float, limit: int,
    ) -> Sequence[ListedSession] | None:
        return await self._runtime.log.created_between(owner, first, last, limit)

    async def heads(
        self, owner: str, *, before: int | None = None, after: int | None = None, limit: int = 50,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        return await self._runtime.log.sessions(owner, before, limit, after=after, oldest_first=oldest_first)

    async def head(self, owner: str, session_id: str) -> SessionHead:
        await find_session(self._source, owner, session_id)
        head = await self._runtime.log.head(session_id)
        if head is None:
            raise NotFound(f"there is no session '{session_id}'")
        return head

    def reserve_stream(self, owner: str) -> StreamSlot:
        most = self._runtime.limits.max_subscribers
        if self._hub.places >= most:
            raise Overloaded(f"{most} clients are watching already, and no more are allowed")
        return self._hub.reserve_slot(owner, self._runtime.tally)

    async def subscribe(
        self, owner: str, session_id: str, dialect: str, options: StreamOptions = NO_OPTIONS, *, after: int = 0,
        place: StreamSlot | None = None,
    ) -> Cursor:
        place = place or self.reserve_stream(owner)
        try:
            session = await find_session(self._source, owner, session_id)
        except BaseException:
            place.close()
            raise
        return self._hub.subscribe(session_id, session.stored_seq, dialect, options, after, place)

    async def read(
        self, owner: str, session_id: str, dialect: str, options: StreamOptions = NO_OPTIONS, *, after: int = 0,
        upto: int | None = None,
    ) -> AsyncIterator[Chunk]:
        head = (await find_session(self._source, owner, session_id)).stored_seq
        return self._hub.read(session_id, dialect, options, after, head if upto is None else upto)

    async def records(
        self, owner: str, session_id: str, after: int = 0, limit: int | None = None,
    ) -> Sequence[m.Record]:
        await find_session(self._source, owner, session_id)
        return await self._runtime.log.read(session_id, after, limit)
