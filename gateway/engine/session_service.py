"""The session service of one server: creates, imports, changes, deletes and commands sessions, and drains them.

Order of construction: `SessionTable()`, then `Hub(sessions=table)`, then `SessionCache(runtime, table, hub)`, then
`LocalSessionService`; at last `log.attach(SessionCommits(table, hub, runtime.tracer))`. Nothing is assigned afterwards.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import structlog
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Busy, Conflict, GatewayError, Interrupted, Invalid, NotFound, Overloaded, TooLarge
from gateway.ids import make_mint, random_id
from gateway.json_values import JsonObject
from gateway.ports import MORE_ROOM, Backend, Receipt, too_many_sessions
from gateway.time_slices import sliced

from .drain_waits import wait_for_turns, wait_unless_forced
from .event_sink import CLEANUP_SECONDS
from .known_requests import KnownRequests, keyed_request
from .recovery import SERVER_STOPPED
from .runtime import Runtime, SessionWriter
from .session import STOPPING, Session
from .session_cache import SessionCache, SessionCommits, SessionSource, SessionTable, find_session, wait_until_stored
from .session_queries import SessionQueries
from .streams import Hub
from .validation import validate_settings

log = structlog.get_logger("dragoman.sessions")

EVENTS_BETWEEN_TURNS = (
    m.SessionCreated,
    m.SessionUpdated,
    m.SessionCompacted,
    m.SessionRewound,
    m.InputAccepted,
    m.NoticePosted,
    m.CustomEvent,
    m.ScopeStatusChanged,
    m.FaultRaised,
)
"""Events that may belong to no turn."""


async def import_records(session: SessionWriter, owner: str, records: Sequence[m.Record]) -> list[m.Record]:
    """Apply the records to the new session, and return them as its own; raises `Invalid` at the first wrong record."""
    if records and isinstance(records[-1].event, m.SessionClosed):
        records = records[:-1]  # the imported session is open, even if the other session was closed
    if not records or not isinstance(records[0].event, m.SessionCreated):
        raise Invalid("the records do not begin with a session")
    imported = []
    async for some in sliced(records):
        for record in some:
            try:
                imported.append(_import_record(session, owner, record))
            except (m.GrammarError, GatewayError) as error:
                raise Invalid(f"record {record.seq} cannot be taken over: {error}") from None
    if session.view.status is not m.SessionStatus.IDLE:
        raise Invalid("the records end in the middle of a turn")
    return imported


def _import_record(session: SessionWriter, owner: str, record: m.Record) -> m.Record:
    view, event = session.view, record.event
    if record.seq != view.head + 1:
        raise Invalid(f"it should be number {view.head + 1}")
    if isinstance(event, m.SessionClosed) or (isinstance(event, m.SessionCreated) and view.head):
        raise Invalid(f"{event.name} has no place there")
    if record.turn_id is None and not isinstance(event, EVENTS_BETWEEN_TURNS):
        raise Invalid(f"{event.name} belongs to no turn")
    if isinstance(event, m.SessionRewound) and event.to_seq >= record.seq:
        raise Invalid("nothing is rewound to what comes later")
    ours = _reowned(session, owner, record)
    session.grammar.check(ours.event, ours.scope_id)
    m.apply(view, ours)
    return ours


def _reowned(session: SessionWriter, owner: str, record: m.Record) -> m.Record:
    """The record with the new owner, fitting settings, a time that is not in the future, and no trace of its own."""
    event = replace(record.event, owner=owner) if isinstance(record.event, m.SessionCreated) else record.event
    if isinstance(event, m.TurnStarted):  # the turn was traced where it ran
        event = replace(event, trace=None, trace_parent=None)
    card = session.runtime.card(event.agent if isinstance(event, m.SessionCreated) else session.view.agent)
    at = min(max(record.at, session.view.at), session.runtime.clock())
    ours = replace(record, session_id=session.view.session_id, event=event, at=at)
    return m.with_settings(ours, lambda settings: validate_settings(card, settings))


WARNING_SHARE = 0.8
"""The share of `limits.max_sessions` at which the operator is warned."""
NEW_IDS = 50
"""How many ids are tried for a new session while parts of the log cannot be written."""
LAST_FRAMES_SECONDS = 5.0
"""How long clients may take to receive the end of their streams when the server stops."""


class LocalSessionService:
    """The sessions that this server writes, for adapters; the sessions of other owners are not found.

    `source` finds sessions: it is the cache itself or, where several servers share a log, also knows their sessions.
    """

    def __init__(self, runtime: Runtime, cache: SessionCache, source: SessionSource, hub: Hub) -> None:
        self._runtime = runtime
        self._table = cache.table
        self._cache = cache
        self._source = source
        self._hub = hub
        self._is_nearly_full = False
        self._known = KnownRequests(runtime.log)
        queries = SessionQueries(runtime, source, hub)
        self.get, self.find_by_id, self.active, self.list = (
            queries.get, queries.find_by_id, queries.active, queries.list)
        self.find, self.heads, self.head, self.records = queries.find, queries.heads, queries.head, queries.records
        self.created_between = queries.created_between
        self.reserve_stream, self.subscribe, self.read = queries.reserve_stream, queries.subscribe, queries.read
        self.resume_place, self.delete_unchanged = hub.resume_place, self.delete

    async def join(self) -> None:
        """Nothing to join: no other server shares the sessions."""

    async def recover(self) -> int:
        """Close turns that ran when the server stopped, and wait on for people; return how many turns there were."""
        heads = await self._runtime.log.sessions_in_turn()
        found = [session for head in heads if (session := await self._source.load(head.session_id)) is not None]
        with suppress(GatewayError):  # the log reports the error itself, and keeps the records
            for session in found:
                await self._runtime.log.wait_stored(session.view.session_id, session.view.head)
        return len(heads)

    # -- creating -------------------------------------------------------------------------------------------------

    async def create(
        self, owner: str, agent: str, *, settings: m.Settings = m.Settings(), history: Sequence[m.SeedMessage] = (),  # noqa: B008
        title: str | None = None, metadata: JsonObject | None = None,
    ) -> m.SessionView:
        limits = self._runtime.limits
        self._check_room(owner)
        if len(history) > limits.history_messages:
            raise TooLarge(f"a session may start with {limits.history_messages} messages, not {len(history)}")
        card = self._runtime.card(agent)
        settings = validate_settings(card, await self._runtime.defaults.filled(owner, agent, settings))
        self._check_room(owner)
        session = Session(self._new_id(), self._runtime)
        self._cache.keep(session)
        created = session.append(m.SessionCreated(
            agent=agent, owner=owner, title=title, metadata=metadata or {}, settings=settings, history=tuple(history),
        ))
        await wait_until_stored(self._runtime.log, session.view.session_id, created.seq)
        self._warn_if_nearly_full()
        return session.view

    async def import_session(
        self, owner: str, records: Sequence[m.Record], *, session_id: str | None = None,
    ) -> m.SessionView:
        self._check_room(owner)
        session = Session(session_id or self._new_id(), self._runtime)
        imported = await import_records(session, owner, records)
        self._check_room(owner)
        if session_id is not None:
            await self._check_free(session_id)
        self._cache.keep(session)
        session.changed_seq = session.view.head
        for record in imported:
            self._runtime.log.append(record)
        await wait_until_stored(self._runtime.log, session.view.session_id, session.view.head)
        self._warn_if_nearly_full()
        return session.view

    async def _check_free(self, session_id: str) -> None:
        """Raise `Conflict` unless a session of this id can be stored now."""
        found = await self._source.load(session_id)
        if found is not None or self._table.get(session_id) is not None or self._cache.is_deleting(session_id):
            raise Conflict(f"there is a session '{session_id}' already")

    def _new_id(self) -> str:
        """The id of a new session, in a part of the log that can be written just now, if there is one."""
        found = random_id("sess")
        for _ in range(NEW_IDS):
            if self._runtime.log.error_of(found) is None:
                break
            found = random_id("sess")
        return found

    def _check_room(self, owner: str) -> None:
        most = self._runtime.limits.max_sessions
        if self._runtime.log.write_error is not None:
            raise self._runtime.log.write_error
        if self._runtime.log.session_count >= most:
            raise Overloaded(too_many_sessions(most))
        self._runtime.tally.check(owner, "sessions")
        self._runtime.tally.check(owner, "stored_bytes")

    def _warn_if_nearly_full(self) -> None:
        """Warn the operator when most sessions that are allowed are there, once until some are deleted."""
        count, most = self._runtime.log.session_count, self._runtime.limits.max_sessions
        is_nearly_full = count >= WARNING_SHARE * most
        if is_nearly_full and not self._is_nearly_full:
            log.warning("sessions_nearly_full", sessions=count, max_sessions=most, remedy=MORE_ROOM)
        self._is_nearly_full = is_nearly_full

    # -- changing -------------------------------------------------------------------------------------------------

    async def update(
        self, owner: str, session_id: str, *, title: str | None = None, metadata: JsonObject | None = None,
        agent: str | None = None,
    ) -> m.SessionView:
        session = await self._open(owner, session_id)
        if agent is not None:
            if session.run is not None:
                raise Busy("a turn is running in this session; its agent cannot change meanwhile")
            validate_settings(self._runtime.card(agent), session.view.settings)
        return await self._append(session, m.SessionUpdated(title=title, metadata=metadata, agent=agent))

    async def close(self, owner: str, session_id: str, reason: m.CloseReason) -> m.SessionView:
        session = await find_session(self._source, owner, session_id)
        if session.view.closed is not None:
            return session.view
        if session.run is not None:
            session.run.stop()
        return await self._append(session, m.SessionClosed(reason=reason))

    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> m.SessionView:
        session = await self._open(owner, session_id)
        scope = session.view.scopes.get(scope_id)
        if scope is None:
            raise NotFound(f"session '{session_id}' has no sub-agent '{scope_id}'")
        if scope_id in session.grammar.scopes:
            raise Conflict(f"sub-agent '{scope_id}' is still at work")
        if scope.status is m.ScopeStatus.ARCHIVED:
            return session.view
        return await self._append(session, m.ScopeStatusChanged(status=m.ScopeStatus.ARCHIVED), scope_id)

    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = None) -> m.SessionView:
        session = await self._open(owner, session_id)
        if session.run is not None:
            raise Busy("a turn is running in this session; wait for its end or interrupt it")
        if all(mark.seq != to_seq for mark in session.view.checkpoints):
            raise NotFound(f"session '{session_id}' cannot be rewound to record {to_seq}")
        return await self._append(session, m.SessionRewound(to_seq=to_seq, reason=reason))

    async def post_event(self, owner: str, session_id: str, event: m.NoticePosted | m.CustomEvent) -> m.SessionView:
        session = await self._open(owner, session_id)
        return await self._append(session, event)

    async def replace_backend(self, owner: str, session_id: str, backend: Backend | None) -> None:
        await find_session(self._source, owner, session_id)
        if backend is None:
            self._runtime.replacement_backends.pop(session_id, None)
        else:
            self._runtime.replacement_backends[session_id] = backend

    async def _append(self, session: Session, event: m.AnyEvent, scope_id: str = m.ROOT) -> m.SessionView:
        if (error := self._runtime.log.error_of(session.view.session_id)) is not None:
            raise error
        record = session.append(event, scope_id)
        await wait_until_stored(self._runtime.log, record.session_id, record.seq)
        return session.view

    async def _open(self, owner: str, session_id: str) -> Session:
        session = await find_session(self._source, owner, session_id)
        if session.view.closed is not None:
            raise Conflict(f"the session is {session.view.closed}")
        return session

    async def delete(self, owner: str, session_id: str, head: int | None = None) -> None:
        session = await find_session(self._source, owner, session_id)
        if (error := self._runtime.log.error_of(session_id)) is not None:
            raise error
        await self._cache.delete(session, head)

    # -- commands -------------------------------------------------------------------------------------------------

    def check_turn(self, owner: str) -> None:
        if self._runtime.is_draining:
            raise Overloaded(STOPPING)
        if self._runtime.log.write_error is not None:
            raise self._runtime.log.write_error
        self._runtime.tally.check(owner, "stored_bytes")

    async def submit(self, owner: str, session_id: str, commands: Sequence[m.AnyCommand]) -> Receipt:
        session = await find_session(self._source, owner, session_id)
        request = keyed_request((owner, session_id, commands))
        if request is not None and (done := await self._earlier_receipt(session, request)) is not None:
            return done
        receipt = session.submit(commands, None if request is None else make_mint(request))
        await wait_until_stored(self._runtime.log, session_id, session.view.head)
        return receipt

    async def _earlier_receipt(self, session: Session, request: str) -> Receipt | None:
        """The receipt of a request whose client was not told that it was accepted; None if it was not accepted."""
        log, session_id = self._runtime.log, session.view.session_id
        if (error := log.error_of(session_id)) is not None:
            raise error
        await wait_until_stored(log, session_id, session.view.head)
        return await self._known.receipt(session_id, request)

    async def client_left(self, owner: str, session_id: str, turn_id: str) -> None:
        session = self._table.get(session_id)
        run = session.run if session is not None and self._runtime.cancel_on_disconnect else None
        if session is not None and run is not None and run.turn_id == turn_id:
            with suppress(GatewayError):  # the client that would see the error has left
                session.submit([m.Interrupt(turn_id=turn_id)])

    # -- the end of the server ------------------------------------------------------------------------------------

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Start no turn; let running turns finish for so many seconds, or until `hurry` is set; then end them.

        Turns that another server runs and that clients watch here are waited for, too, and go on there.
        Streams of idle sessions end at once, the others when their turn has ended.
        """
        self._runtime.is_draining = True
        self._hub.drain()
        await wait_for_turns(self._table, self._hub, seconds, hurry)
        runs = list(self._table.running_turns())
        for run in runs:
            run.fail(Interrupted(SERVER_STOPPED).fault)
            run.stop()
        for session in self._table:
            if session.run is not None:
                session.run.abandon()
                runs.append(session.run)
        await wait_unless_forced(hurry, CLEANUP_SECONDS, *(run.wait_finished(CLEANUP_SECONDS) for run in runs))
        await wait_unless_forced(hurry, LAST_FRAMES_SECONDS, self._hub.wait_until_unwatched())

    @property
    def leads(self) -> bool:
        """Whether this server does the work that only one of several servers may do."""
        return True

    async def release(self) -> None:
        """Nothing to release: no other server shares the sessions."""

    async def rest(self) -> None:
        """Nothing to end: no other server shares the sessions."""


def local_session_service(runtime: Runtime, table: SessionTable, hub: Hub) -> LocalSessionService:
    """The session service of the only server of a log, attached to the log."""
    cache = SessionCache(runtime, table, hub)
    runtime.log.attach(SessionCommits(table, hub, runtime.tracer))
    return LocalSessionService(runtime, cache, cache, hub)
