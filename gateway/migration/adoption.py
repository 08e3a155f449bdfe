"""Brings a conversation over from another server when a client first asks for its id."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import structlog
from msgspec import Struct

import gateway.model as m
from gateway.backends.remote import SessionLink
from gateway.errors import BackendFailed, Conflict, GatewayError, NotFound, TimedOut
from gateway.json_values import JsonObject
from gateway.ports import (
    NO_OPTIONS,
    Chunk,
    Clock,
    EventLog,
    PastSession,
    PastSessions,
    Receipt,
    Resources,
    SessionHead,
    SessionService,
    StreamOptions,
    StreamSlot,
    Subscription,
)
from gateway.quotas import SYSTEM_OWNER
from gateway.supervision import take_error

from .past_records import KEPT_ID, Destination, Origin, count_turns, make_records

log = structlog.get_logger("dragoman.adoption")

Answer = TypeVar("Answer")
DELETED = "deleted_import"
"""The kind of resource that says that a session was deleted here, and must not come back from the other server."""
MISSING_SECONDS, MAX_MISSING = 60.0, 10_000
"""For how long the servers are not asked again for an id that they do not have, and how many such ids are kept."""
AT_ONCE = 8
"""So many conversations are read at once: clients that ask for many ids do not flood the other server."""
ADOPTION_SECONDS = 60.0
"""How long the client of an unknown session waits for the other server."""
TOO_SLOW = f"the server that may have this session did not send it within {ADOPTION_SECONDS:.0f} s; try again"
STILL_RUNS = "a turn of this session runs or waits at the server that it comes from; ask again when the turn has ended"


class AdoptionSource(Struct, frozen=True, kw_only=True):
    """A server whose sessions are brought over: they become sessions of this agent, and of this user."""

    agent: str
    owner: str
    origin: Origin
    sessions: PastSessions


class Adopter:
    """Asks the servers, one after the other, for a session that is not here, and stores it whole under its id."""

    def __init__(
        self, sources: Sequence[AdoptionSource], sessions: SessionService, event_log: EventLog, resources: Resources,
        clock: Clock,
    ) -> None:
        self._sources, self._sessions, self._log = sources, sessions, event_log
        self._resources, self._clock = resources, clock
        self._retired: list[AdoptionSource] = []
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._missing: dict[tuple[str, str], float] = {}
        """The ids that no server has, each with the time of the loop until which nobody is asked again."""
        self._places = asyncio.Semaphore(AT_ONCE)

    def reload(self, sources: Sequence[AdoptionSource]) -> None:
        """Ask other servers from now on."""
        self._retired += self._sources
        self._sources = sources
        self._missing.clear()

    async def close(self) -> None:
        for task in self._running.values():
            task.cancel()
        for source in (*self._sources, *self._retired):
            await source.sessions.close()

    async def adopt(self, owner: str, session_id: str) -> bool:
        """Whether the session may be here now; the error of a server that may have the session, but does not send it.

        However many ask for a session at once, it is brought over once.
        """
        now, asked = asyncio.get_running_loop().time(), (owner, session_id)
        sources = [one for one in self._sources if one.owner == owner]
        if not sources or not KEPT_ID.fullmatch(session_id) or self._missing.get(asked, now) > now:
            return False
        task = self._running.get(asked)
        if task is None:
            task = self._running[asked] = asyncio.create_task(self._adopt(sources, session_id), name="adoption")
            task.add_done_callback(lambda done: self._running.pop(asked, None))
            task.add_done_callback(take_error)
        try:
            await asyncio.shield(task)
        except NotFound:
            self._note_missing(asked, now)
            return False
        return True

    async def note_deleted(self, session_id: str) -> None:
        """The session is about to be deleted here: it must not come back."""
        with suppress(Conflict):  # it was deleted before
            await self._resources.create(DELETED, SYSTEM_OWNER, {"at": self._clock()}, resource_id=session_id)

    async def _adopt(self, sources: Sequence[AdoptionSource], session_id: str) -> None:
        """Raises `NotFound` if no server has the session, or if it was deleted here."""
        if await self._log.head(session_id) is not None:
            return
        if await self._was_deleted(session_id):
            raise NotFound(f"session '{session_id}' was deleted")
        try:
            async with asyncio.timeout(ADOPTION_SECONDS), self._places:
                for source in sources:
                    if await self._adopt_from(source, session_id):
                        return
        except TimeoutError:
            raise TimedOut(TOO_SLOW) from None
        raise NotFound(f"no server has session '{session_id}'")

    async def _adopt_from(self, source: AdoptionSource, session_id: str) -> bool:
        try:
            past = await source.sessions.read(session_id)
            records = self._records(source, past)
            await self._sessions.import_session(source.owner, records, session_id=session_id)
        except NotFound:
            return False
        except GatewayError as error:
            if await self._log.head(session_id) is not None:
                return True  # another server of ours has brought it over
            log.warning("session_adoption_failed", session=session_id, agent=source.agent, reason=error.message)
            raise
        log.info("session_adopted", session=session_id, agent=source.agent, turns=count_turns(records),
                 unseen=list(past.unseen))
        return True

    def _records(self, source: AdoptionSource, past: PastSession) -> list[m.Record]:
        if past.is_running:
            raise Conflict(STILL_RUNS)
        try:
            return make_records(
                past, source.origin, Destination(owner=source.owner, agent=source.agent), self._clock())
        except m.GrammarError as error:
            raise BackendFailed(f"the history of the session contradicts itself: {error}") from None

    async def _was_deleted(self, session_id: str) -> bool:
        try:
            await self._resources.get(DELETED, SYSTEM_OWNER, session_id)
        except NotFound:
            return False
        return True

    def _note_missing(self, asked: tuple[str, str], now: float) -> None:
        self._missing.pop(asked, None)
        self._missing[asked] = now + MISSING_SECONDS
        if len(self._missing) > MAX_MISSING:
            del self._missing[next(iter(self._missing))]


class AdoptingSessions:
    """The session service, as the handlers of dialects use it; what is not found is looked for at other servers."""

    def __init__(self, sessions: SessionService, adopter: Adopter) -> None:
        self._sessions, self._adopter = sessions, adopter
        self.create, self.import_session = sessions.create, sessions.import_session
        self.find_by_id, self.active, self.list, self.find, self.heads = (
            sessions.find_by_id, sessions.active, sessions.list, sessions.find, sessions.heads)
        self.created_between, self.resume_place = sessions.created_between, sessions.resume_place
        self.check_turn, self.client_left, self.reserve_stream = (
            sessions.check_turn, sessions.client_left, sessions.reserve_stream)
        self.archive_scope, self.rewind, self.post_event, self.replace_backend = (
            sessions.archive_scope, sessions.rewind, sessions.post_event, sessions.replace_backend)

    async def _found(self, owner: str, session_id: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of the service; if it does not find the session, the answer after the session was brought over."""
        try:
            return await ask()
        except NotFound:
            if not await self._adopter.adopt(owner, session_id):
                raise
            return await ask()

    async def get(self, owner: str, session_id: str) -> m.SessionView:
        return await self._found(owner, session_id, lambda: self._sessions.get(owner, session_id))

    async def head(self, owner: str, session_id: str) -> SessionHead:
        return await self._found(owner, session_id, lambda: self._sessions.head(owner, session_id))

    async def records(
        self, owner: str, session_id: str, after: int = 0, limit: int | None = None,
    ) -> Sequence[m.Record]:
        return await self._found(
            owner, session_id, lambda: self._sessions.records(owner, session_id, after, limit))

    async def read(
        self, owner: str, session_id: str, dialect: str, options: StreamOptions = NO_OPTIONS, *, after: int = 0,
        upto: int | None = None,
    ) -> AsyncIterator[Chunk]:
        return await self._found(owner, session_id, lambda: self._sessions.read(
            owner, session_id, dialect, options, after=after, upto=upto))

    async def subscribe(
        self, owner: str, session_id: str, dialect: str, options: StreamOptions = NO_OPTIONS, *, after: int = 0,
        place: StreamSlot | None = None,
    ) -> Subscription:
        if place is None:  # a slot that was reserved is closed by the failure of the first call
            await self.get(owner, session_id)
        return await self._sessions.subscribe(owner, session_id, dialect, options, after=after, place=place)

    async def submit(self, owner: str, session_id: str, commands: Sequence[m.AnyCommand]) -> Receipt:
        return await self._found(owner, session_id, lambda: self._sessions.submit(owner, session_id, commands))

    async def update(
        self, owner: str, session_id: str, *, title: str | None = None, metadata: JsonObject | None = None,
        agent: str | None = None,
    ) -> m.SessionView:
        return await self._found(owner, session_id, lambda: self._sessions.update(
            owner, session_id, title=title, metadata=metadata, agent=agent))

    async def close(self, owner: str, session_id: str, reason: m.CloseReason) -> m.SessionView:
        return await self._found(owner, session_id, lambda: self._sessions.close(owner, session_id, reason))

    async def delete(self, owner: str, session_id: str) -> None:
        view = await self.get(owner, session_id)
        if SessionLink.read(view.metadata).upstream_session == session_id:
            await self._adopter.note_deleted(session_id)
        await self._sessions.delete(owner, session_id)
