"""Sessions at hand, and those that must be fetched: each is loaded once, kept while it is wanted, and let go."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice

import gateway.model as m
from gateway.errors import GatewayError, NotFound, OutcomeUnknown, Overloaded
from gateway.ports import Backend

from .recovery import apply_records, restore_idle, restore_running, revive_turn
from .runtime import Runtime
from .session import Session
from .streams import Hub
from .turn import TurnRun


class SessionCache:
    """Knows which sessions are at hand, and tells the hub and the log what becomes of them."""

    def __init__(self, runtime: Runtime, hub: Hub) -> None:
        self._runtime = runtime
        self._hub = hub
        self._sessions: dict[str, Session] = {}
        self._loading: dict[str, asyncio.Future[Session | None]] = {}
        self._going: dict[str, asyncio.Task[None]] = {}
        """Sessions that are being deleted, and who does it."""
        runtime.log.on_commit, runtime.log.on_trouble = self._committed, self._troubled
        hub.rests, hub.unsettled = self._is_quiet, self._is_unsettled

    def __len__(self) -> int:
        return self._runtime.log.session_count

    @property
    def cached_sessions(self) -> int:
        return len(self._sessions)

    def is_at_work(self, backend: Backend) -> bool:
        """Whether a turn of this backend runs or waits."""
        return any(session.run is not None and session.run.backend is backend for session in self._sessions.values())

    @property
    def running(self) -> int:
        return sum(session.run is not None for session in self._sessions.values())

    async def recover(self) -> int:
        """Close turns that ran when the server stopped, and wait on with those that wait; how many there were."""
        heads = await self._runtime.log.sessions_in_turn()
        found = [session for head in heads if (session := await self._loaded(head.session_id)) is not None]
        with suppress(GatewayError):  # the log tells of its trouble itself, and what it has taken it keeps
            for session in found:
                await self._runtime.log.wait_stored(session.view.session_id, session.view.head)
        return len(heads)

    # -- fetched and let go ---------------------------------------------------------------------------------------

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
        found = await asyncio.shield(loading)
        if found is None or self._sessions.get(session_id) is found:
            return found
        return await self._loaded(session_id)  # it was let go before we were told

    async def _load(self, session_id: str) -> Session | None:
        log = self._runtime.log
        head = await log.head(session_id)
        if head is None:
            return None
        session = Session(session_id, self._runtime)
        if head.in_turn:
            records = await log.read(session_id)
            await restore_running(session, records, head.head)
            self._keep(session)
            revive_turn(session, records)
        else:
            await restore_idle(session, await log.read_without_deltas(session_id), head.head)
            self._keep(session)
        return session

    def _keep(self, session: Session) -> None:
        """Have it at hand; those that nobody has asked for longest, and that rest, are let go."""
        self._sessions[session.view.session_id] = session
        excess = len(self._sessions) - self._runtime.limits.sessions_at_hand
        for session_id, other in list(islice(self._sessions.items(), min(excess, 64))) if excess > 0 else ():
            del self._sessions[session_id]
            if not self._rests(other):
                self._sessions[session_id] = other
            else:
                self._let_go(session_id)

    def _let_go(self, session_id: str) -> None:
        """It is not at hand any more; where several servers share a log, another may take it."""

    # -- how they are ---------------------------------------------------------------------------------------------

    @property
    def _talking(self) -> Iterator[TurnRun]:
        """The turns that do not merely wait for people."""
        for session in self._sessions.values():
            if session.run is not None and session.view.status is m.SessionStatus.RUNNING:
                yield session.run

    def _rests(self, session: Session) -> bool:
        return (
            session.run is None and session.stored_seq == session.view.head > 0
            and not self._hub.is_watched(session.view.session_id)
        )

    def _is_quiet(self, session_id: str) -> bool:
        """Whether nothing is about to happen in the session by itself."""
        session = self._sessions.get(session_id)
        return session is None or (
            session.stored_seq == session.view.head
            and (session.run is None or session.view.status is m.SessionStatus.SUSPENDED)
        )

    def _is_unsettled(self, session_id: str) -> bool:
        """Whether records of the session are on their way into the log."""
        session = self._sessions.get(session_id)
        return session is not None and session.stored_seq < session.view.head

    def start_of_turn(self, session_id: str, cursor: int) -> int:
        """After which record to begin, so that the turn at the cursor is seen from its start."""
        session = self._sessions.get(session_id)
        return session.view.turn_start(cursor) if session is not None else 0

    def agent_of(self, session_id: str) -> str:
        session = self._sessions.get(session_id)
        return session.view.agent if session is not None else ""

    # -- what is in the log ---------------------------------------------------------------------------------------

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """In this block something was taken: if it cannot be stored just now it is kept, and may be stored later."""
        try:
            yield
        except Overloaded as error:
            if error.nothing_stored:
                raise
            raise OutcomeUnknown(f"it is not known whether this was done: {error.message}") from None

    async def _seen(self, session: Session) -> m.SessionView:
        """What clients may be shown of the session: nothing that is not in the log, whatever has been said since."""
        try:
            while session.changed_seq > session.stored_seq:
                await self._runtime.log.wait_stored(session.view.session_id, session.changed_seq)
        except GatewayError:
            if not session.stored_seq:
                raise
            stored = m.SessionView(session_id=session.view.session_id)
            await apply_records(stored, await self._runtime.log.read(stored.session_id))
            return stored
        return session.view

    def _committed(self, records: Sequence[m.Record]) -> None:
        session = self._sessions.get(records[0].session_id)
        if session is not None:
            session.stored_seq = records[-1].seq
        self._hub.publish(records)

    def _troubled(self, why: GatewayError) -> None:
        """Nothing can be stored: what runs is ended, and told so once it can be."""
        for run in list(self._talking):
            run.fail_now(why.fault)
