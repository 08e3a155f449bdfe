"""All sessions: made, changed, deleted and commanded; what adapters know as the session service."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
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
    SessionUpdated,
    SessionView,
    Settings,
)
from gateway.ports import Backend, Receipt

from .adopting import retold
from .draining import silence, unless
from .finding import Finding
from .fitting import fitted
from .listening import LET_GO_SECONDS
from .returning import GONE
from .session import STOPPING, Session

FAREWELL_SECONDS = 5.0
"""How long clients may take to be told the end of what they watch, when the server stops."""


class SessionService(Finding):
    """The engine's door; other people's sessions are not found here."""

    # -- made -----------------------------------------------------------------------------------------------------

    async def create(
        self, owner: str, agent: str, *, settings: Settings = Settings(), history: Sequence[SeedMessage] = (),  # noqa: B008
        title: str | None = None, metadata: dict[str, Any] | None = None,
    ) -> SessionView:
        limits = self._house.limits
        self._check_room(owner)
        if len(history) > limits.history_messages:
            raise TooLarge(f"a session may start with {limits.history_messages} messages, not {len(history)}")
        settings = fitted(self._house.card(agent), settings)
        session = Session(unguessable("sess"), self._house)
        self._keep(session)
        created = session.say(SessionCreated(
            agent=agent, owner=owner, title=title, metadata=metadata or {}, settings=settings, history=tuple(history),
        ))
        with self._taken():
            await self._house.log.settled(session.view.session_id, created.seq)
        return session.view

    async def adopt(self, owner: str, records: Sequence[Record]) -> SessionView:
        self._check_room(owner)
        session = Session(unguessable("sess"), self._house)
        told = await retold(session, owner, records)
        self._check_room(owner)
        self._keep(session)
        session.told = session.view.head
        for record in told:
            self._house.log.append(record)
        with self._taken():
            await self._house.log.settled(session.view.session_id, session.view.head)
        return session.view

    def _check_room(self, owner: str) -> None:
        most = self._house.limits.max_sessions
        if self._house.log.trouble is not None:
            raise self._house.log.trouble
        if len(self) >= most:
            raise Overloaded(f"there are {most} sessions already, and no more are allowed")
        self._house.tally.check(owner, "sessions")
        self._house.tally.check(owner, "stored_bytes")

    # -- changed --------------------------------------------------------------------------------------------------

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
        with self._taken():
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
        removing = self._going[session_id] = asyncio.ensure_future(self._remove(session))
        await asyncio.shield(removing)  # a client that hangs up does not leave it half done

    async def _remove(self, session: Session) -> None:
        session_id = session.view.session_id
        try:
            self._house.performers.pop(session_id, None)
            if session.run is not None:
                session.run.stop()
            session.say(SessionClosed(reason=CloseReason.DELETED))
            with self._taken():
                await self._house.log.forget(session_id)
            self._sessions.pop(session_id, None)
        finally:
            del self._going[session_id]
        for put_away in self._house.after_delete:
            await put_away(session_id)

    # -- commanded ------------------------------------------------------------------------------------------------

    def check_turn(self, owner: str) -> None:
        if self._house.closing:
            raise Overloaded(STOPPING)
        if self._house.log.trouble is not None:
            raise self._house.log.trouble
        self._house.tally.check(owner, "stored_bytes")

    async def submit(self, owner: str, session_id: str, commands: Sequence[AnyCommand]) -> Receipt:
        session = await self._find(owner, session_id)
        receipt = session.submit(commands)
        with self._taken():
            await self._house.log.settled(session_id, session.view.head)
        return receipt

    async def leave(self, owner: str, session_id: str, turn_id: str) -> None:
        session = self._sessions.get(session_id)
        run = session.run if session is not None and self._house.cancel_on_leave else None
        if session is not None and run is not None and run.turn_id == turn_id:
            with suppress(GatewayError):  # whoever would be told has left
                session.submit([Interrupt(turn_id=turn_id)])

    # -- the end of the server ------------------------------------------------------------------------------------

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Start nothing new; let running turns finish for so long, or until somebody is in a hurry; then end them.

        Who watches a session at rest is let go at once, the others when they have been told the end.
        """
        self._house.closing = True
        self._hub.drain()
        await silence(lambda: self._talking, seconds, hurry)
        runs = list(self._talking)
        for run in runs:
            run.fail(Interrupted(GONE).fault)
            run.stop()
        for session in self._sessions.values():
            if session.run is not None:
                session.run.abandon()
                runs.append(session.run)
        await unless(hurry, LET_GO_SECONDS, *(run.gone(LET_GO_SECONDS) for run in runs))
        await unless(hurry, FAREWELL_SECONDS, self._hub.deserted())

    @property
    def leads(self) -> bool:
        """Whether we are the one, where several servers share a log, who does what only one may."""
        return True

    async def rest(self) -> None:
        """Nothing more will be asked; where several servers share a log, the others are told."""
