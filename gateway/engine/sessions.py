"""All sessions: made, found, listed, deleted, commanded and watched; what adapters know as the session service."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from gateway.errors import Busy, Conflict, NotFound, Overloaded, TooLarge
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
from .session import House, Session
from .turn import LET_GO_SECONDS, TurnRun


class SessionService:
    """The engine's door; other people's sessions are not found here."""

    def __init__(self, house: House, hub: Hub) -> None:
        self._house = house
        self._hub = hub
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

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
        created = session.say(SessionCreated(
            agent=agent, owner=owner, title=title, metadata=metadata or {}, settings=settings, history=tuple(history),
        ))
        self._sessions[session.view.session_id] = session
        await self._house.log.settled(session.view.session_id, created.seq)
        return session.view

    async def adopt(self, owner: str, records: Sequence[Record]) -> SessionView:
        self._check_room()
        session = Session(unguessable("sess"), self._house)
        told = retold(session, owner, records)
        for record in told:
            self._house.log.append(record)
        self._sessions[session.view.session_id] = session
        await self._house.log.settled(session.view.session_id, session.view.head)
        return session.view

    def _check_room(self) -> None:
        most = self._house.limits.max_sessions
        if len(self._sessions) >= most:
            raise Overloaded(f"there are {most} sessions already, and no more are allowed")

    async def get(self, owner: str, session_id: str) -> SessionView:
        return self._find(owner, session_id).view

    async def find(self, owner: str, word: str) -> SessionView:
        session_id = self._house.places.session_of(word)
        if session_id is None or (session := self._sessions.get(session_id)) is None or session.view.owner != owner:
            raise NotFound(f"there is nothing called '{word}'")
        return session.view

    async def active(self, owner: str) -> Sequence[SessionView]:
        return [session.view for session in self._sessions.values()
                if session.run is not None and session.view.owner == owner]

    async def list(
        self, owner: str, *, before: int | None = None, limit: int = 50,
    ) -> tuple[list[SessionView], int | None]:
        heads = await self._house.log.sessions(owner, before, limit + 1)
        more, heads = len(heads) > limit, heads[:limit]
        views = [self._sessions[head.session_id].view for head in heads if head.session_id in self._sessions]
        return views, heads[-1].ordinal if more else None

    async def heads(
        self, owner: str, *, before: int | None = None, after: int | None = None, limit: int = 50,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        return await self._house.log.sessions(owner, before, limit, after=after, oldest_first=oldest_first)

    async def head(self, owner: str, session_id: str) -> SessionHead:
        self._find(owner, session_id)
        head = await self._house.log.head(session_id)
        if head is None:
            raise NotFound(f"there is no session '{session_id}'")
        return head

    async def update(
        self, owner: str, session_id: str, *, title: str | None = None, metadata: dict[str, Any] | None = None,
        agent: str | None = None,
    ) -> SessionView:
        session = self._open(owner, session_id)
        if agent is not None:
            if session.run is not None:
                raise Busy("a turn is running in this session; its agent cannot change meanwhile")
            fitted(self._house.card(agent), session.view.settings)
        return await self._say(session, SessionUpdated(title=title, metadata=metadata, agent=agent))

    async def close(self, owner: str, session_id: str, reason: CloseReason) -> SessionView:
        session = self._find(owner, session_id)
        if session.view.closed is not None:
            return session.view
        if session.run is not None:
            session.run.stop()
        return await self._say(session, SessionClosed(reason=reason))

    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> SessionView:
        session = self._open(owner, session_id)
        scope = session.view.scopes.get(scope_id)
        if scope is None:
            raise NotFound(f"session '{session_id}' has no sub-agent '{scope_id}'")
        if scope_id in session.grammar.scopes:
            raise Conflict(f"sub-agent '{scope_id}' is still at work")
        if scope.status is ScopeStatus.ARCHIVED:
            return session.view
        return await self._say(session, ScopeStatusChanged(status=ScopeStatus.ARCHIVED), scope_id)

    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = None) -> SessionView:
        session = self._open(owner, session_id)
        if session.run is not None:
            raise Busy("a turn is running in this session; wait for its end or interrupt it")
        if all(mark.seq != to_seq for mark in session.view.checkpoints):
            raise NotFound(f"session '{session_id}' cannot be rewound to record {to_seq}")
        return await self._say(session, SessionRewound(to_seq=to_seq, reason=reason))

    async def tell(self, owner: str, session_id: str, event: NoticePosted | CustomEvent) -> SessionView:
        session = self._open(owner, session_id)
        return await self._say(session, event)

    async def perform(self, owner: str, session_id: str, backend: Backend | None) -> None:
        self._find(owner, session_id)
        if backend is None:
            self._house.performers.pop(session_id, None)
        else:
            self._house.performers[session_id] = backend

    async def _say(self, session: Session, event: AnyEvent, scope_id: str = ROOT) -> SessionView:
        record = session.say(event, scope_id)
        await self._house.log.settled(record.session_id, record.seq)
        return session.view

    def _open(self, owner: str, session_id: str) -> Session:
        session = self._find(owner, session_id)
        if session.view.closed is not None:
            raise Conflict(f"the session is {session.view.closed}")
        return session

    async def delete(self, owner: str, session_id: str) -> None:
        session = self._find(owner, session_id)
        del self._sessions[session_id]
        self._house.performers.pop(session_id, None)
        if session.run is not None:
            session.run.stop()
        session.say(SessionClosed(reason=CloseReason.DELETED))
        await self._house.log.forget(session_id)
        for put_away in self._house.after_delete:
            await put_away(session_id)

    async def submit(self, owner: str, session_id: str, commands: Sequence[AnyCommand]) -> Receipt:
        session = self._find(owner, session_id)
        receipt = session.submit(commands)
        await self._house.log.settled(session_id, session.view.head)
        return receipt

    async def watch(self, owner: str, session_id: str, dialect: str, options: str = "", *, after: int = 0) -> Cursor:
        session = self._find(owner, session_id)
        most = self._house.limits.max_subscribers
        if self._hub.subscribers >= most:
            raise Overloaded(f"{most} clients are watching already, and no more are allowed")
        return self._hub.watch(session_id, session.view.head, dialect, options, after)

    async def leave(self, owner: str, session_id: str, turn_id: str) -> None:
        session = self._sessions.get(session_id)
        if self._house.cancel_on_leave and session is not None and session.run is not None:
            session.submit([Interrupt(turn_id=turn_id)])

    async def read(
        self, owner: str, session_id: str, dialect: str, options: str = "", *, after: int = 0, upto: int | None = None,
    ) -> AsyncIterator[Chunk]:
        head = self._find(owner, session_id).view.head
        async for chunk in self._hub.read(session_id, dialect, options, after, head if upto is None else upto):
            yield chunk

    async def records(
        self, owner: str, session_id: str, after: int = 0, limit: int | None = None,
    ) -> Sequence[Record]:
        """What the log has of a session."""
        self._find(owner, session_id)
        return await self._house.log.read(session_id, after, limit)

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Start nothing new; let running turns finish for so long, or until somebody is in a hurry; then end them."""
        self._house.closing = True
        done = asyncio.gather(*(run.gone(seconds) for run in self._talking))
        hurried = asyncio.ensure_future(hurry.wait())
        waits: list[asyncio.Future[Any]] = [done, hurried]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        runs = [session.run for session in self._sessions.values() if session.run is not None]
        for run in runs:
            run.stop()
        await asyncio.gather(*(run.gone(LET_GO_SECONDS) for run in runs))

    @property
    def _talking(self) -> Iterator[TurnRun]:
        """The turns that do not merely wait for people."""
        for session in self._sessions.values():
            if session.run is not None and session.view.status is SessionStatus.RUNNING:
                yield session.run

    def _find(self, owner: str, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None or session.view.owner != owner:
            raise NotFound(f"there is no session '{session_id}'")
        return session

    def start_of_turn(self, session_id: str, cursor: int) -> int:
        """After which record to begin, so that the turn at the cursor is seen from its start."""
        session = self._sessions.get(session_id)
        return session.view.turn_start(cursor) if session is not None else 0

    def agent_of(self, session_id: str) -> str:
        session = self._sessions.get(session_id)
        return session.view.agent if session is not None else ""
