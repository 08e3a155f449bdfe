"""Sessions that other servers write: copies that are brought up to date before they are shown, and their streams."""

import asyncio
from collections.abc import Sequence

import structlog

import gateway.model as m
from gateway.engine import Hub, Runtime, Session, SessionCache, restore_idle
from gateway.errors import GatewayError
from gateway.ports import LogListener
from gateway.storage.log.redis import Covers, LeaseLost, SharedLog, decode_entry
from gateway.storage.redis import RedisClient

from .leases import HeldSessions
from .membership import Leases
from .stream_relay import SessionChannels, StreamRelay

log = structlog.get_logger("dragoman.cluster")


class SessionCopies:
    """All sessions of the cluster: those that this server writes from its cache, the others as copies of the log.

    While somebody watches a copy, its channel is listened to; records that were missed are read from the log. No
    client waits in Redis: one connection listens for all of them.
    """

    def __init__(
        self, runtime: Runtime, hub: Hub, log: SharedLog, cache: SessionCache, held: HeldSessions, leases: Leases,
        channels: SessionChannels, relay: StreamRelay,
    ) -> None:
        self._runtime = runtime
        self._hub = hub
        self._log = log
        self._cache = cache
        self._table = cache.table
        self._held = held
        self._leases = leases
        self._channels = channels
        self._relay = relay
        self._following: dict[str, asyncio.Task[None]] = {}
        self._follow_again: set[str] = set()
        """Sessions of which records went missing while they were being read: they are read again."""
        self._gaps: asyncio.Task[None] | None = None

    # -- copies ---------------------------------------------------------------------------------------------------

    async def load(self, session_id: str) -> Session | None:
        if self._held.holds(session_id):
            await self._leases.of(session_id).ensure_good()
        if self._cache.is_deleting(session_id):
            return None
        if self._held.holds(session_id):
            return await self._load_held(session_id)
        return await self._load_copy(session_id) or await self._load_copy(session_id)

    async def _load_held(self, session_id: str) -> Session | None:
        try:
            return await self._cache.load(session_id)
        except LeaseLost:
            if self._held.holds(session_id):
                raise
            return await self.load(session_id)

    async def _load_copy(self, session_id: str) -> Session | None:
        """The session as its writer has stored it; None if there is no such session, or if its log became shorter."""
        stored = None if self._table.get(session_id) is not None else await self._read_copy(session_id)
        if not self._held.holds(session_id) and (session := self._keep_copy(session_id, stored)) is not None:
            shown = self._hub.head_of(session_id)
            known = session.view.head if shown is None else min(shown, session.view.head)
            records = await self._log.since(session_id, known)
            if records is not None or self._held.holds(session_id):
                self.apply(session_id, records or ())
            else:
                self._held.drop_copy(session_id)
                self._hub.cut_session(session_id)
        return await self._load_held(session_id) if self._held.holds(session_id) else self._table.get(session_id)

    async def _read_copy(self, session_id: str) -> Session | None:
        records = await self._log.read_without_deltas(session_id)
        if not records:
            return None
        session = Session(session_id, self._runtime, is_copy=True)
        await restore_idle(session, records, records[-1].seq)
        return session

    def _keep_copy(self, session_id: str, stored: Session | None) -> Session | None:
        session = self._table.remove(session_id) or stored
        if session is not None:
            self._cache.keep(session)
        return session

    async def stored_view(self, session: Session) -> m.SessionView:
        try:
            return await self._cache.stored_view(session)
        except LeaseLost:
            found = await self.load(session.view.session_id)
            if found is None:
                raise
            return await self._cache.stored_view(found)

    def apply(self, session_id: str, records: Sequence[m.Record]) -> None:
        """Apply records that another server has stored to the copy, and pass them on to its subscribers."""
        session = self._table.get(session_id)
        if session is not None and not self._held.holds(session_id):
            for record in records:
                if record.seq == session.view.head + 1:
                    m.apply(session.view, record)
            session.stored_seq = session.changed_seq = session.view.head
        self._relay.relay(session_id, records)

    def forget(self, covers: Covers) -> None:
        """Redis has lost its data: forget the sessions that it had, and cut their streams."""
        for session_id in [one.view.session_id for one in self._table if covers(one.view.session_id)]:
            session = self._table.remove(session_id)
            if session is not None and session.run is not None:
                session.run.abandon()
        for session_id in [one for one in self._runtime.replacement_backends if covers(one)]:
            del self._runtime.replacement_backends[session_id]
        self._hub.cut(covers)

    def primary_changed(self, covers: Covers) -> None:
        """Another Redis server is the primary: the lease may be lost, and so may records that were not replicated.

        Such records may be in copies and in streams, and what is stored next would not follow them: copies are read
        anew, and clients connect again.
        """
        for part in self._log.redis.parts:
            if part.covers == covers:
                self._leases.in_part(part).mark_doubtful()
        for session_id in [one.view.session_id for one in self._table if covers(one.view.session_id)]:
            self._held.drop_copy(session_id)
        self._hub.cut(covers)

    # -- streams --------------------------------------------------------------------------------------------------

    async def follow(self, session_id: str) -> None:
        """Receive what is stored from now on, and read what was stored before."""
        await self._channels.listen(session_id)
        await self.load(session_id)

    def received(self, session_id: str, entry: bytes) -> None:
        """The writer of this session has published what it has stored."""
        if self._held.holds(session_id) or not self._hub.is_watched(session_id):
            self._channels.ignore(session_id)
        else:
            self.apply(session_id, decode_entry(entry, self._log.seal))

    def read_all_again(self) -> None:
        """Published entries may be lost: read the log of every session that is watched here and written elsewhere."""
        for session_id in self._hub.watched:
            if not self._held.holds(session_id):
                self._relay.read_again(session_id)

    async def read_unannounced(self) -> None:
        """Read what a server has stored in sessions that are watched here, and could not announce before it died."""
        watched: dict[RedisClient, list[str]] = {}
        for session_id in self._hub.watched:
            if not self._held.holds(session_id) and self._leases.of(session_id).is_good:
                watched.setdefault(self._log.redis.part_of(session_id), []).append(session_id)
        await asyncio.gather(*(self._compare_heads(part, found) for part, found in watched.items()))

    async def _compare_heads(self, part: RedisClient, session_ids: list[str]) -> None:
        heads = await part.read_all([("HGET", part.key("s", one), "head") for one in session_ids])
        for session_id, head in zip(session_ids, heads, strict=True):
            if head is not None and int(head) > (self._hub.head_of(session_id) or 0):
                self._relay.read_again(session_id)

    def adjust_channels(self) -> None:
        """Ignore the channels of sessions that nobody watches; follow the sessions that are watched."""
        for session_id in self._channels.sessions:
            if not self._hub.is_watched(session_id):
                self._channels.ignore(session_id)
        for session_id in self._hub.watched:
            if not self._held.holds(session_id) and not self._channels.listens_to(session_id):
                self._relay.read_again(session_id)

    def start(self) -> None:
        self._gaps = asyncio.create_task(self._close_gaps(), name="session copies")

    async def _close_gaps(self) -> None:
        while True:
            session_id = await self._relay.next_gap()
            if session_id in self._following:
                self._follow_again.add(session_id)
                continue
            self._following[session_id] = asyncio.create_task(self._follow_on(session_id))

    async def _follow_on(self, session_id: str) -> None:
        try:
            await self.follow(session_id)
            while session_id in self._follow_again:
                self._follow_again.discard(session_id)
                await self.follow(session_id)
        except GatewayError as error:
            self._follow_again.discard(session_id)
            self._channels.ignore(session_id)  # so that the next heartbeat tries again
            log.warning("session_tail_failed", session=session_id, error=error.message)
        finally:
            del self._following[session_id]

    def close(self) -> None:
        for task in (self._gaps, *self._following.values()):
            if task is not None:
                task.cancel()


class ClusterCommits:
    """Listens to the log: its own records go to their session, records of other servers to the copies."""

    def __init__(self, own: LogListener, held: HeldSessions, copies: SessionCopies) -> None:
        self.failed = own.failed
        self._own = own
        self._held = held
        self._copies = copies

    def committed(self, records: Sequence[m.Record]) -> None:
        session_id = records[0].session_id
        if self._held.holds(session_id):
            self._own.committed(records)
        else:
            self._copies.apply(session_id, records)

    def lease_lost(self, session_id: str) -> None:
        self._held.lose(session_id)
        self._held.doubtful[session_id] = None

    def data_lost(self, covers: Covers) -> None:
        self._copies.forget(covers)

    def primary_changed(self, covers: Covers) -> None:
        self._copies.primary_changed(covers)
