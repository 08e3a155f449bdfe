"""The sessions in memory: each is loaded once from the log, kept while it is used, and evicted when it is idle."""

import asyncio
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Protocol

import gateway.model as m
from gateway.errors import Conflict, GatewayError, NotFound, OutcomeUnknown, Overloaded
from gateway.ports import Backend, EventLog
from gateway.supervision import take_error

from .recovery import apply_records, restore_idle, restore_running
from .runtime import Runtime, TurnTracer
from .session import Session
from .streams import Hub
from .turn import TurnRun

EVICTIONS_PER_SESSION = 64
"""How many sessions are looked at, when one is added, to find some that can be evicted."""


class SessionTable:
    """The sessions in memory by their ids; the session that was used last is the last one."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self.get = self._sessions.get

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._sessions.values()))

    def use(self, session_id: str) -> Session | None:
        """The session, which is from now on the one that was used last."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._sessions[session_id] = session
        return session

    def add(self, session: Session) -> None:
        self._sessions[session.view.session_id] = session

    def remove(self, session_id: str) -> Session | None:
        return self._sessions.pop(session_id, None)

    def clear(self) -> Sequence[Session]:
        """Remove all sessions, and return them."""
        sessions = tuple(self._sessions.values())
        self._sessions.clear()
        return sessions

    def least_used(self, count: int) -> Sequence[Session]:
        return tuple(islice(self._sessions.values(), count))

    # -- what is asked about sessions -----------------------------------------------------------------------------

    def is_idle(self, session_id: str) -> bool:
        """Whether nothing will happen in the session unless a client sends something."""
        session = self.get(session_id)
        if session is None:
            return True
        if session.is_copy:
            return session.view.status is not m.SessionStatus.RUNNING
        return session.stored_seq == session.view.head and (
            session.run is None or session.view.status is m.SessionStatus.SUSPENDED
        )

    def has_unstored_records(self, session_id: str) -> bool:
        """Whether records of the session may be on their way into the log.

        What another server is about to store cannot be known here: while a turn runs there, there may be something.
        """
        session = self.get(session_id)
        if session is None:
            return False
        if session.is_copy:
            return session.view.status is m.SessionStatus.RUNNING
        return session.stored_seq < session.view.head

    def turn_start(self, session_id: str, cursor: int) -> int:
        """After which record to begin reading, so that the turn at the cursor is read from its start."""
        session = self.get(session_id)
        return session.view.turn_start(cursor) if session is not None else 0

    def agent_of(self, session_id: str) -> str:
        session = self.get(session_id)
        return session.view.agent if session is not None else ""

    @property
    def turn_count(self) -> int:
        """How many turns run or wait for people."""
        return sum(session.run is not None for session in self._sessions.values())

    def running(self) -> Iterator[Session]:
        """The sessions whose turns run; those that wait for people are left out."""
        for session in self:
            if session.run is not None and session.view.status is m.SessionStatus.RUNNING:
                yield session

    def running_turns(self) -> Iterator[TurnRun]:
        """The turns that run; those that wait for people are left out."""
        return (session.run for session in self.running() if session.run is not None)

    def runs_elsewhere(self, session_ids: Iterable[str]) -> bool:
        """Whether another server runs a turn in one of these sessions."""
        sessions = map(self.get, session_ids)
        return any(one is not None and one.is_copy and one.view.status is m.SessionStatus.RUNNING for one in sessions)

    def uses_backend(self, backend: Backend) -> bool:
        """Whether a turn of this backend runs or waits."""
        return any(session.run is not None and session.run.backend is backend for session in self._sessions.values())


class SessionCommits:
    """Listens to the log: passes stored records on to their session, to its subscribers, and to the tracer after them.

    A delta on its own ends no span: the tracer is not called for it.
    """

    def __init__(self, table: SessionTable, hub: Hub, tracer: TurnTracer | None = None) -> None:
        self._table = table
        self._feeds = hub.feeds
        self._trace = tracer.committed if tracer is not None else None

    def committed(self, records: Sequence[m.Record]) -> None:
        session = self._table.get(records[0].session_id)
        if session is not None:
            session.stored_seq = records[-1].seq
        feed = self._feeds.get(records[0].session_id)
        if feed is not None:
            feed.publish(records)
        if self._trace is not None and (len(records) > 1 or type(records[0].event) is not m.BlockDelta):
            self._trace(records)

    def failed(self, error: GatewayError, sessions: Container[str] | None = None) -> None:
        """End the running turns of these sessions, or all; their clients see the end as soon as it can be stored."""
        for session in self._table.running():
            if session.run is not None and (sessions is None or session.view.session_id in sessions):
                session.run.fail_now(error.fault)


class SessionSource(Protocol):
    """Where queries and commands find sessions."""

    async def load(self, session_id: str) -> Session | None:
        """The session; None if there is no such session."""
    async def stored_view(self, session: Session) -> m.SessionView:
        """The state of the session as far as it is stored, which is what clients may see."""


async def find_session(source: SessionSource, owner: str, session_id: str) -> Session:
    """The session of this owner; raises `NotFound`."""
    session = await source.load(session_id)
    if session is None or session.view.owner != owner:
        raise NotFound(f"there is no session '{session_id}'")
    return session


class Ownership(Protocol):
    """Which sessions this server writes, where several servers share a log."""

    async def before_load(self, session_id: str) -> None:
        """The session is about to be loaded, to be written by this server; raises an error if it may not write it."""
    def evicted(self, session_id: str) -> None:
        """The session is not in memory any more: another server may write it."""


class SoleOwner:
    """The only server of its log writes all sessions."""

    async def before_load(self, session_id: str) -> None:
        """There is no other server that could write the session."""

    def evicted(self, session_id: str) -> None:
        """There is no other server that could write the session."""


class SessionCache:
    """Loads the sessions that this server writes, keeps as many as the limits allow, and deletes them."""

    def __init__(self, runtime: Runtime, table: SessionTable, hub: Hub, ownership: Ownership | None = None) -> None:
        self.table = table
        self._runtime = runtime
        self._hub = hub
        self._ownership = ownership or SoleOwner()
        self._loading: dict[str, asyncio.Future[Session | None]] = {}
        self._deletions: dict[str, asyncio.Future[None]] = {}

    async def load(self, session_id: str) -> Session | None:
        """The session, read from the log if it is not in memory; once, however many ask for it."""
        if session_id in self._deletions:
            return None
        if (session := self.table.use(session_id)) is not None:
            return session
        loading = self._loading.get(session_id)
        if loading is None:
            loading = self._loading[session_id] = asyncio.ensure_future(self._load(session_id))
            loading.add_done_callback(lambda done: self._loading.pop(session_id, None))
            loading.add_done_callback(take_error)
        found = await asyncio.shield(loading)
        if found is None or self.table.get(session_id) is found:
            return found
        return await self.load(session_id)  # it was evicted before this task ran again

    async def _load(self, session_id: str) -> Session | None:
        await self._ownership.before_load(session_id)
        log = self._runtime.log
        head = await log.head(session_id)
        if head is None:
            return None
        session = Session(session_id, self._runtime)
        if head.in_turn:
            records = await log.read(session_id)
            await restore_running(session, records, head.head)
            self.keep(session)
            if self._runtime.tracer is not None:
                self._runtime.tracer.restored(records)
            session.revive(records)
        else:
            await restore_idle(session, await log.read_without_deltas(session_id), head.head)
            self.keep(session)
        return session

    def keep(self, session: Session) -> None:
        """Put the session into the table; if there are too many, evict idle sessions that were not used for longest."""
        self.table.add(session)
        excess = len(self.table) - self._runtime.limits.cached_sessions
        if excess <= 0:
            return
        for other in self.table.least_used(min(excess, EVICTIONS_PER_SESSION)):
            session_id = other.view.session_id
            if self._can_be_evicted(other):
                self.table.remove(session_id)
                self._ownership.evicted(session_id)
            else:
                self.table.use(session_id)

    def _can_be_evicted(self, session: Session) -> bool:
        return (
            session.run is None and session.stored_seq == session.view.head > 0
            and not self._hub.is_watched(session.view.session_id)
        )

    async def stored_view(self, session: Session) -> m.SessionView:
        """The state of the session as far as it is stored, whatever was appended since."""
        try:
            while (wanted := session.changed_seq) > session.stored_seq:
                await self._runtime.log.wait_stored(session.view.session_id, wanted)
                if session.stored_seq < wanted:  # it was lost while its records were stored, and claimed again since
                    return await self._logged_view(session)
        except GatewayError:
            if not session.stored_seq:
                raise
            return await self._logged_view(session)
        return session.view

    async def _logged_view(self, session: Session) -> m.SessionView:
        stored = m.SessionView(session_id=session.view.session_id)
        await apply_records(stored, await self._runtime.log.read(stored.session_id))
        return stored

    # -- deleting -------------------------------------------------------------------------------------------------

    def is_deleting(self, session_id: str) -> bool:
        return session_id in self._deletions

    async def delete(self, session: Session, head: int | None = None) -> None:
        """Delete the session and all that belongs to it; a client that disconnects does not stop the deletion.

        Raises `Conflict` if `head` is given and is not its last record any more.
        """
        deletion = self._deletions[session.view.session_id] = asyncio.ensure_future(self._delete(session, head))
        deletion.add_done_callback(take_error)
        await asyncio.shield(deletion)

    async def _delete(self, session: Session, head: int | None) -> None:
        session_id = session.view.session_id
        try:
            if head is not None and session.view.head != head:
                raise Conflict(f"something has happened in session '{session_id}' meanwhile")
            self._runtime.replacement_backends.pop(session_id, None)
            if session.run is not None:
                session.run.stop()
            session.append(m.SessionClosed(reason=m.CloseReason.DELETED))
            with unknown_unless_stored():
                await self._runtime.log.delete_session(session_id)
            self.table.remove(session_id)
        finally:
            del self._deletions[session_id]
        try:
            await self._runtime.cleanup.session_deleted(session_id)
        except Overloaded as error:
            raise OutcomeUnknown(
                f"the session is deleted; it is not known whether its files and links are: {error.message}") from None


async def wait_until_stored(log: EventLog, session_id: str, seq: int) -> None:
    """Wait until that record is stored; raises `OutcomeUnknown` if the log keeps it, and may store it later."""
    try:
        await log.wait_stored(session_id, seq)
    except Overloaded as error:
        raise _storing_error(error) from None


@contextmanager
def unknown_unless_stored() -> Iterator[None]:
    """Raise `OutcomeUnknown` if storing fails here: the log keeps the records, and may store them later."""
    try:
        yield
    except Overloaded as error:
        raise _storing_error(error) from None


def _storing_error(error: Overloaded) -> GatewayError:
    if error.nothing_stored:
        return error
    return OutcomeUnknown(f"it is not known whether this was done: {error.message}")
