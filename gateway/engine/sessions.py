"""All sessions: made, found, listed, deleted, commanded and watched; what adapters know as the session service."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from gateway.errors import Busy, Conflict, GatewayError, Interrupted, NotFound, Overloaded, TooLarge
from gateway.ids import unguessable
from gateway.model import (
    ROOT,
    AnyCommand,
    AnyEvent,
    CloseReason,
    CustomEvent,
    Interrupt,
    NoticePosted,
    Record,
    ScopeStatus,
    ScopeStatusChanged,
    SeedMessage,
    SessionClosed,
    SessionCreated,
    SessionRewound,
    SessionStatus,
    SessionUpdated,
    SessionView,
    Settings,
)
from gateway.ports import Backend, Chunk, Receipt, SessionHead

from .adopting import retold
from .fitting import fitted
from .hub import Cursor, Hub
from .returning import GONE, restore, restore_idle, revive
from .session import House, Session
from .turn import LET_GO_SECONDS, TurnRun

FAREWELL_SECONDS = 5.0
"""How long clients may take to be told the end of what they watch, when the server stops."""
LOOK_SECONDS = 0.25
"""How often to look whether turns still run that the server waits for."""


class SessionService:
    """The engine's door; other people's sessions are not found here."""

    def __init__(self, house: House, hub: Hub) -> None:
        self._house = house
        self._hub = hub
        self._sessions: dict[str, Session] = {}
        self._loading: dict[str, asyncio.Future[Session | None]] = {}
        self._going: set[str] = set()
        house.log.on_commit, house.log.on_trouble = self._committed, self._troubled
        hub.rests, hub.unsettled = self._is_quiet, self._is_unsettled

    def __len__(self) -> int:
        return self._house.log.size

    @property
    def at_hand(self) -> int:
        return len(self._sessions)

    def is_at_work(self, backend: Backend) -> bool:
        """Whether a turn of this backend runs or waits."""
        return any(session.run is not None and session.run.backend is backend for session in self._sessions.values())

    @property
    def running(self) -> int:
        return sum(session.run is not None for session in self._sessions.values())

    async def create(
        self, owner: str, agent: str, *, settings: Settings = Settings(), history: Sequence[SeedMessage] = (),  # noqa: B008
        title: str | None = None, metadata: dict[str, Any] | None = None,
    ) -> SessionView:
        limits = self._house.limits
        self._check_room()
        if len(history) > limits.history_messages:
            raise TooLarge(f"a session may start with {limits.history_messages} messages, not {len(history)}")
        settings = fitted(self._house.card(agent), settings)
        session = Session(unguessable("sess"), self._house)
        self._keep(session)
        created = session.say(SessionCreated(
            agent=agent, owner=owner, title=title, metadata=metadata or {}, settings=settings, history=tuple(history),
        ))
        await self._house.log.settled(session.view.session_id, created.seq)
        return session.view

    async def adopt(self, owner: str, records: Sequence[Record]) -> SessionView:
        self._check_room()
        session = Session(unguessable("sess"), self._house)
        told = retold(session, owner, records)
        self._keep(session)
        session.told = session.view.head
        for record in told:
            self._house.log.append(record)
        await self._house.log.settled(session.view.session_id, session.view.head)
        return session.view

    def _check_room(self) -> None:
        most = self._house.limits.max_sessions
        if self._house.log.trouble is not None:
            raise self._house.log.trouble
        if len(self) >= most:
            raise Overloaded(f"there are {most} sessions already, and no more are allowed")

    async def get(self, owner: str, session_id: str) -> SessionView:
        return await self._seen(await self._find(owner, session_id))

    async def find(self, owner: str, word: str) -> SessionView:
        session_id = await self._house.log.place_of(word)
        session = await self._loaded(session_id) if session_id is not None else None
        if session is None or session.view.owner != owner:
            raise NotFound(f"there is nothing called '{word}'")
        return await self._seen(session)

    async def active(self, owner: str) -> Sequence[SessionView]:
        found = [await self._loaded(head.session_id) for head in await self._house.log.unfinished(owner)]
        return [await self._seen(session) for session in found if session is not None]

    async def list(
        self, owner: str, *, before: int | None = None, limit: int = 50,
    ) -> tuple[list[SessionView], int | None]:
        heads = await self._house.log.sessions(owner, before, limit + 1)
        more, heads = len(heads) > limit, heads[:limit]
        found = [await self._loaded(head.session_id) for head in heads]
        views = [await self._seen(session) for session in found if session is not None]
        return views, heads[-1].ordinal if more else None

    async def heads(
        self, owner: str, *, before: int | None = None, after: int | None = None, limit: int = 50,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        return await self._house.log.sessions(owner, before, limit, after=after, oldest_first=oldest_first)

    async def head(self, owner: str, session_id: str) -> SessionHead:
        await self._find(owner, session_id)
        head = await self._house.log.head(session_id)
        if head is None:
            raise NotFound(f"there is no session '{session_id}'")
        return head

    async def update(
        self, owner: str, session_id: str, *, title: str | None = None, metadata: dict[str, Any] | None = None,
        agent: str | None = None,
    ) -> SessionView:
        session = await self._open(owner, session_id)
        if agent is not None:
            if session.run is not None:
                raise Busy("a turn is running in this session; its agent cannot change meanwhile")
            fitted(self._house.card(agent), session.view.settings)
        return await self._say(session, SessionUpdated(title=title, metadata=metadata, agent=agent))

    async def close(self, owner: str, session_id: str, reason: CloseReason) -> SessionView:
        session = await self._find(owner, session_id)
        if session.view.closed is not None:
            return session.view
        if session.run is not None:
            session.run.stop()
        return await self._say(session, SessionClosed(reason=reason))

    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> SessionView:
        session = await self._open(owner, session_id)
        scope = session.view.scopes.get(scope_id)
        if scope is None:
            raise NotFound(f"session '{session_id}' has no sub-agent '{scope_id}'")
        if scope_id in session.grammar.scopes:
            raise Conflict(f"sub-agent '{scope_id}' is still at work")
        if scope.status is ScopeStatus.ARCHIVED:
            return session.view
        return await self._say(session, ScopeStatusChanged(status=ScopeStatus.ARCHIVED), scope_id)

    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = None) -> SessionView:
        session = await self._open(owner, session_id)
        if session.run is not None:
            raise Busy("a turn is running in this session; wait for its end or interrupt it")
        if all(mark.seq != to_seq for mark in session.view.checkpoints):
            raise NotFound(f"session '{session_id}' cannot be rewound to record {to_seq}")
        return await self._say(session, SessionRewound(to_seq=to_seq, reason=reason))

    async def tell(self, owner: str, session_id: str, event: NoticePosted | CustomEvent) -> SessionView:
        session = await self._open(owner, session_id)
        return await self._say(session, event)

    async def perform(self, owner: str, session_id: str, backend: Backend | None) -> None:
        await self._find(owner, session_id)
        if backend is None:
            self._house.performers.pop(session_id, None)
        else:
            self._house.performers[session_id] = backend

    async def _say(self, session: Session, event: AnyEvent, scope_id: str = ROOT) -> SessionView:
        if self._house.log.trouble is not None:
            raise self._house.log.trouble
        record = session.say(event, scope_id)
        await self._house.log.settled(record.session_id, record.seq)
        return session.view

    async def _open(self, owner: str, session_id: str) -> Session:
        session = await self._find(owner, session_id)
        if session.view.closed is not None:
            raise Conflict(f"the session is {session.view.closed}")
        return session

    async def delete(self, owner: str, session_id: str) -> None:
        session = await self._find(owner, session_id)
        if self._house.log.trouble is not None:
            raise self._house.log.trouble
        self._going.add(session_id)
        self._house.performers.pop(session_id, None)
        if session.run is not None:
            session.run.stop()
        session.say(SessionClosed(reason=CloseReason.DELETED))
        try:
            await self._house.log.forget(session_id)
            self._sessions.pop(session_id, None)
        finally:
            self._going.discard(session_id)
        for put_away in self._house.after_delete:
            await put_away(session_id)

    async def submit(self, owner: str, session_id: str, commands: Sequence[AnyCommand]) -> Receipt:
        session = await self._find(owner, session_id)
        receipt = session.submit(commands)
        await self._house.log.settled(session_id, session.view.head)
        return receipt

    async def watch(self, owner: str, session_id: str, dialect: str, options: str = "", *, after: int = 0) -> Cursor:
        session = await self._find(owner, session_id)
        most = self._house.limits.max_subscribers
        if self._hub.subscribers >= most:
            raise Overloaded(f"{most} clients are watching already, and no more are allowed")
        return self._hub.watch(session_id, session.safe, dialect, options, after)

    async def leave(self, owner: str, session_id: str, turn_id: str) -> None:
        session = self._sessions.get(session_id)
        if self._house.cancel_on_leave and session is not None and session.run is not None:
            session.submit([Interrupt(turn_id=turn_id)])

    async def read(
        self, owner: str, session_id: str, dialect: str, options: str = "", *, after: int = 0, upto: int | None = None,
    ) -> AsyncIterator[Chunk]:
        head = (await self._find(owner, session_id)).safe
        async for chunk in self._hub.read(session_id, dialect, options, after, head if upto is None else upto):
            yield chunk

    async def records(
        self, owner: str, session_id: str, after: int = 0, limit: int | None = None,
    ) -> Sequence[Record]:
        """What the log has of a session."""
        await self._find(owner, session_id)
        return await self._house.log.read(session_id, after, limit)

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Start nothing new; let running turns finish for so long, or until somebody is in a hurry; then end them.

        Who watches a session at rest is let go at once, the others when they have been told the end.
        """
        self._house.closing = True
        self._hub.drain()
        await self._silence(seconds, hurry)
        runs = list(self._talking)
        for run in runs:
            run.fail(Interrupted(GONE).fault)
            run.stop()
        for session in self._sessions.values():
            if session.run is not None:
                session.run.abandon()
                runs.append(session.run)
        await _unless(hurry, LET_GO_SECONDS, *(run.gone(LET_GO_SECONDS) for run in runs))
        await _unless(hurry, FAREWELL_SECONDS, self._hub.deserted())

    async def _silence(self, seconds: float, hurry: asyncio.Event) -> None:
        """Wait until no turn runs, for so long; one that has come to wait for people does not count any more."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while (runs := list(self._talking)) and (left := end - clock()) > 0 and not hurry.is_set():
            await _unless(hurry, min(left, LOOK_SECONDS), *(run.gone(left) for run in runs))

    @property
    def _talking(self) -> Iterator[TurnRun]:
        """The turns that do not merely wait for people."""
        for session in self._sessions.values():
            if session.run is not None and session.view.status is SessionStatus.RUNNING:
                yield session.run

    @property
    def leads(self) -> bool:
        """Whether we are the one, where several servers share a log, who does what only one may."""
        return True

    async def rest(self) -> None:
        """Nothing more will be asked; where several servers share a log, the others are told."""

    # -- sessions at hand, and those that must be fetched ---------------------------------------------------------

    async def recover(self) -> int:
        """Close turns that ran when the server stopped, and wait on with those that wait; how many there were."""
        heads = await self._house.log.unfinished()
        found = [session for head in heads if (session := await self._loaded(head.session_id)) is not None]
        with suppress(GatewayError):  # the log tells of its trouble itself, and what it has taken it keeps
            for session in found:
                await self._house.log.settled(session.view.session_id, session.view.head)
        return len(heads)

    async def _find(self, owner: str, session_id: str) -> Session:
        session = await self._loaded(session_id)
        if session is None or session.view.owner != owner:
            raise NotFound(f"there is no session '{session_id}'")
        return session

    async def _loaded(self, session_id: str) -> Session | None:
        """The session, fetched from the log if it is not at hand; once, however many ask for it."""
        if session_id in self._going:
            return None
        if (session := self._sessions.pop(session_id, None)) is not None:
            self._sessions[session_id] = session  # who was asked for last is let go last
            return session
        loading = self._loading.get(session_id)
        if loading is None:
            loading = self._loading[session_id] = asyncio.ensure_future(self._load(session_id))
            loading.add_done_callback(lambda done: self._loading.pop(session_id, None))
        return await asyncio.shield(loading)

    async def _load(self, session_id: str) -> Session | None:
        log = self._house.log
        head = await log.head(session_id)
        if head is None:
            return None
        session = Session(session_id, self._house)
        if head.in_turn:
            records = await log.read(session_id)
            restore(session, records, head.head)
            self._keep(session)
            revive(session, records)
        else:
            restore_idle(session, await log.spine(session_id), head.head)
            self._keep(session)
        return session

    def _keep(self, session: Session) -> None:
        """Have it at hand; those that nobody has asked for longest, and that rest, are let go."""
        self._sessions[session.view.session_id] = session
        excess = len(self._sessions) - self._house.limits.sessions_at_hand
        for session_id, other in list(islice(self._sessions.items(), min(excess, 64))) if excess > 0 else ():
            del self._sessions[session_id]
            if not self._rests(other):
                self._sessions[session_id] = other
            else:
                self._let_go(session_id)

    def _let_go(self, session_id: str) -> None:
        """It is not at hand any more; where several servers share a log, another may take it."""

    def _rests(self, session: Session) -> bool:
        return (
            session.run is None and session.safe == session.view.head > 0
            and not self._hub.is_watched(session.view.session_id)
        )

    def _is_quiet(self, session_id: str) -> bool:
        """Whether nothing is about to happen in the session by itself."""
        session = self._sessions.get(session_id)
        return session is None or (
            session.safe == session.view.head
            and (session.run is None or session.view.status is SessionStatus.SUSPENDED)
        )

    def _is_unsettled(self, session_id: str) -> bool:
        """Whether records of the session are on their way into the log."""
        session = self._sessions.get(session_id)
        return session is not None and session.safe < session.view.head

    async def _seen(self, session: Session) -> SessionView:
        """What clients may be shown of the session: nothing that is not in the log, whatever has been said since."""
        try:
            while session.told > session.safe:
                await self._house.log.settled(session.view.session_id, session.told)
        except GatewayError:
            if not session.safe:
                raise
            stored = SessionView(session_id=session.view.session_id)
            for record in await self._house.log.read(stored.session_id):
                stored.apply(record)
            return stored
        return session.view

    def _committed(self, records: Sequence[Record]) -> None:
        session = self._sessions.get(records[0].session_id)
        if session is not None:
            session.safe = records[-1].seq
        self._hub.publish(records)

    def _troubled(self, why: GatewayError) -> None:
        """Nothing can be stored: what runs is ended, and told so once it can be."""
        for run in list(self._talking):
            run.break_off(why.fault)

    def start_of_turn(self, session_id: str, cursor: int) -> int:
        """After which record to begin, so that the turn at the cursor is seen from its start."""
        session = self._sessions.get(session_id)
        return session.view.turn_start(cursor) if session is not None else 0

    def agent_of(self, session_id: str) -> str:
        session = self._sessions.get(session_id)
        return session.view.agent if session is not None else ""


async def _unless(hurry: asyncio.Event, seconds: float, *works: Coroutine[Any, Any, None]) -> None:
    """Wait for all of these, but no longer than that, and not at all once somebody is in a hurry."""
    async def all_done() -> None:
        await asyncio.gather(*works)

    waits = [asyncio.ensure_future(all_done()), asyncio.ensure_future(hurry.wait())]
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for waiting in waits:
        waiting.cancel()
    await asyncio.wait(waits)
