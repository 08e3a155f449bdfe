"""Writes the log in Redis: records leave in groups, and are stored if this server holds the token of their session."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

import structlog

import gateway.model as m
from gateway.errors import GatewayError, Overloaded
from gateway.ports import NO_LISTENER, ListedSession, ListOrder, LogListener, too_many_sessions
from gateway.quotas import Quotas, StoreTally
from gateway.storage.redis import (
    Appended,
    Command,
    OwnerUsage,
    RedisClient,
    RedisDataLost,
    RedisUnreachable,
    Reply,
    read_appended,
    read_removed,
)
from gateway.storage.sealing import UNSEALED, Seal
from gateway.supervision import keep_running

from .commit_outcomes import CommitWaiters, LeaseListener, LeaseLost, SessionLimitReached
from .reader import RedisLogReader, RedisSessionLists, encode_entry, encode_news, is_same_record, summary_arguments

log = structlog.get_logger("dragoman.log")
WINDOW, RETRY_SECONDS = 0.002, 0.25
"""Seconds that records wait for others after a group of many, and after which a group that failed is written again."""
FEW = 4
"""After a group of fewer sessions the next records wait for no others: the server is nearly idle."""
SESSIONS_PER_SCRIPT = 64
"""To how many sessions one call of the script appends."""
SYNCED_EVENTS = (m.InputRequested, m.TurnEnded)
"""Events that clients see only after they are on the disk, where the settings ask for that."""
DEFAULT_MAX_SESSIONS, OWNERS_PER_COUNT = 1_000_000, 200
"""How many sessions there may be by default, and how many owners are counted in one request."""
TOKEN_BYTES = 3
TAKEN_OVER = "another server has taken the session over; ask again"


def new_token() -> str:
    """The token of a new session: a random number, so that of two servers that import it, one is its writer."""
    return str(1 + int(secrets.token_hex(TOKEN_BYTES), 16))


class RedisLog:
    """The server that creates or claims a session holds its token; records without that token are not stored."""

    def __init__(
        self, redis: RedisClient, *, fsync: bool = False, seal: Seal = UNSEALED, tally: StoreTally | None = None,
        most: Callable[[], int] = lambda: DEFAULT_MAX_SESSIONS,
    ) -> None:
        self.redis = redis
        self.seal = seal
        reader = RedisLogReader(redis, seal)
        self.read, self.read_without_deltas, self.since = reader.read, reader.read_without_deltas, reader.since
        self.sessions, self.sessions_in_turn = reader.sessions, reader.sessions_in_turn
        self.head, self.session_of = reader.head, reader.session_of
        self._lists = RedisSessionLists(redis, reader)
        self.count_listed, self.mentioning = self._lists.count, self._lists.mentioning
        self.created_between = self._lists.created_between
        self._tally: StoreTally = tally or Quotas()
        self._most = most
        self._listener: LogListener = NO_LISTENER
        self._lease_listener: LeaseListener | None = None
        self._fsync = fsync
        self._tokens: dict[str, str] = {}
        self._heads: dict[str, int] = {}
        self._pending: dict[str, list[m.Record]] = {}
        self._leaving: dict[str, list[m.Record]] = {}
        self._unannounced: list[list[m.Record]] = []
        self._waiting = CommitWaiters()
        self._stirred = asyncio.Event()
        self._count = 0
        self._had_many = False
        """Whether the last group had many sessions."""
        self._closing = False
        self.parts: Sequence[RedisLog] = (self,)
        """The logs that have the sessions together: this one, or one for each partition of a cluster."""
        self._writing: asyncio.Task[None] | None = None
        redis.attach(self)

    def attach(self, listener: LogListener, leases: LeaseListener | None = None) -> None:
        """Report to these listeners from now on; the second one gets the sessions that were lost."""
        assert self._listener is NO_LISTENER, "a log has one listener"
        self._listener, self._lease_listener = listener, leases

    async def open(self) -> None:
        await self.redis.open()
        await self.start()

    async def start(self) -> None:
        """Begin to write; the connection is open."""
        replies = await self.redis.read_all([("ZCARD", self.redis.key("sessions"))])
        self._count = replies[0]
        await self._lists.complete()
        self._writing = asyncio.create_task(keep_running(self._write_on, self._drop_unwritable), name="redis log")

    def part_of(self, session_id: str) -> "RedisLog":
        return self

    @property
    def session_count(self) -> int:
        return self._count

    @session_count.setter
    def session_count(self, count: int) -> None:
        self._count = count

    @property
    def write_error(self) -> GatewayError | None:
        return self.redis.trouble

    def error_of(self, session_id: str) -> GatewayError | None:
        return self.redis.trouble

    # -- who writes -----------------------------------------------------------------------------------------------

    def holds(self, session_id: str) -> bool:
        return session_id in self._tokens

    @property
    def held(self) -> Sequence[str]:
        return tuple(self._tokens)

    def hold(self, session_id: str, token: str, head: int) -> None:
        """This server writes the session from now on."""
        self._tokens[session_id], self._heads[session_id] = token, head

    def let_go(self, session_id: str) -> str | None:
        """This server does not write the session any more; unstored records are dropped. Returns the token it had."""
        token = self._tokens.pop(session_id, None)
        self._heads.pop(session_id, None)
        self._pending.pop(session_id, None)
        self._lists.let_go(session_id)
        if session_id not in self._leaving:
            self._waiting.refuse(session_id, LeaseLost(TAKEN_OVER))
        return token

    def stored_head(self, session_id: str) -> int:
        """The last record of a held session that this server knows to be stored."""
        return self._heads.get(session_id, 0)

    def token_of(self, session_id: str) -> str | None:
        """The token by which this server holds the session."""
        return self._tokens.get(session_id)

    def is_overtaken(self, session_id: str, token: int) -> bool:
        """Whether this server holds the session by a token that is older than this one."""
        held = self._tokens.get(session_id)
        return held is not None and int(held) < token

    async def flush(self) -> None:
        """Wait until all records are stored, for as long as a lease lasts at most."""
        try:
            async with asyncio.timeout(self.redis.lease):
                for session_id in (*self._leaving, *self._pending):
                    if not self.is_settled(session_id):
                        await self.wait_stored(session_id, self._last(session_id))
        except (TimeoutError, GatewayError):
            log.warning("shutdown_flush_incomplete", sessions=len(self._leaving))

    def _last(self, session_id: str) -> int:
        return (self._pending.get(session_id) or self._leaving[session_id])[-1].seq

    def is_settled(self, session_id: str) -> bool:
        return session_id not in self._pending and session_id not in self._leaving

    async def listed(
        self, owner: str, label: str, order: ListOrder, *, offset: int = 0, limit: int = 50,
    ) -> Sequence[ListedSession]:
        return await self._lists.page(owner, label, order, offset, limit)

    # -- writing --------------------------------------------------------------------------------------------------

    def append(self, record: m.Record) -> None:
        session_id = record.session_id
        records = self._pending.get(session_id)
        if records is not None:
            records.append(record)
            return
        if session_id not in self._tokens:
            if record.seq != 1:
                raise LeaseLost(TAKEN_OVER)
            self.hold(session_id, new_token(), 0)
        self._pending[session_id] = [record]
        self._stirred.set()

    def append_deltas(self, records: Sequence[m.Record]) -> None:
        self.append(records[0])
        self._pending[records[0].session_id] += records[1:]

    async def wait_stored(self, session_id: str, seq: int) -> None:
        if self._heads.get(session_id, -1) >= seq:
            return
        if self.is_settled(session_id):
            raise LeaseLost(TAKEN_OVER)
        if self.write_error is not None:
            raise self.write_error
        await self._waiting.wait(session_id, seq)

    async def _write_on(self) -> None:
        """Write one group after the other; a group that could not be stored is written again, with newer records."""
        while not self._closing or self._pending:
            await self._stirred.wait()
            self._stirred.clear()
            if self._had_many and not self._closing:
                await asyncio.sleep(WINDOW)
            while self._gather():
                try:
                    await self._write()
                except RedisDataLost:
                    break
                except RedisUnreachable as error:
                    self.redis.failed(error)
                    if self._closing:
                        return
                    await asyncio.sleep(min(RETRY_SECONDS, self.redis.patience / 2))

    def _drop_unwritable(self, error: BaseException) -> None:
        """Drop the group whose writing failed by a mistake: its sessions must not keep the others from being stored."""
        lost = tuple(self._leaving)
        log.error("records_not_storable", sessions=len(lost), exc_info=error)
        for session_id in lost:
            self._dropped(session_id)
        self._stirred.set()

    def _gather(self) -> bool:
        for session_id, records in self._pending.items():
            self._leaving.setdefault(session_id, []).extend(records)
        self._pending = {}
        return bool(self._leaving)

    async def _write(self) -> None:
        """Send all records of the group in one write; then look at what became of each session."""
        batch = {session_id: list(records) for session_id, records in self._leaving.items()}
        ids, calls = list(batch), []
        self._had_many = len(ids) >= FEW
        summaries = await self._lists.changed(batch)
        for start in range(0, len(ids), SESSIONS_PER_SCRIPT):
            own = self._tally.quota().sessions
            given: list[str | bytes | int | float] = [
                self.redis.replica, m.MODEL_VERSION, self._most(), "" if own is None else own,
                "0" if self.redis.address.wait else "1"]
            for session_id in islice(ids, start, start + SESSIONS_PER_SCRIPT):
                given += encode_entry(
                    session_id, self._tokens.get(session_id, "-"), batch[session_id], self.seal,
                    summary_arguments(summaries.get(session_id)),
                )
            calls.append(("append", given))
        replies = await self.redis.run_scripts(calls, *self._sync(batch))
        self._check_sync(replies[len(calls):])
        self.redis.worked()
        self._count, appended = read_appended(replies[:len(calls)])
        for session_id, result in zip(ids, appended, strict=True):
            self._note(result.usage)
            if result.outcome == "ok":
                self._lists.stored(session_id, summaries.get(session_id))
            else:
                self._lists.let_go(session_id)
            await self._settle(session_id, batch[session_id], result)
        if self._unannounced:
            await self._announce()

    async def _announce(self) -> None:
        """Tell the other servers of records that replicas have by now; what they miss, they read at their next beat."""
        unannounced, self._unannounced = self._unannounced, []
        with suppress(RedisUnreachable):
            await self.redis.publish_all([
                (f"news:{records[0].session_id}", encode_news(records, self.seal)) for records in unannounced])

    def _note(self, usage: OwnerUsage | None) -> None:
        """Keep what Redis has counted."""
        if usage is not None:
            self._tally.set_usage(usage.owner, "stored_bytes", usage.stored_bytes)
            if usage.sessions is not None:
                self._tally.set_usage(usage.owner, "sessions", usage.sessions)

    def _sync(self, batch: dict[str, list[m.Record]]) -> list[Command]:
        """The commands that wait for the disk: one write, and to wait until it, and all before it, is on the disk."""
        if self._fsync and any(
            isinstance(record.event, SYNCED_EVENTS) for records in batch.values() for record in records
        ):
            waiting = ("WAITAOF", 1, self.redis.address.wait, self.redis.most_ms)
            return [("SET", self.redis.key("synced"), self.redis.replica), waiting]
        return []

    def _check_sync(self, replies: Sequence[Reply]) -> None:
        if replies and (replies[-1][0] < 1 or replies[-1][1] < self.redis.address.wait):
            raise RedisUnreachable(f"Redis at {self.redis.address.shown} does not get to write to its disk")

    async def _settle(self, session_id: str, records: list[m.Record], result: Appended) -> None:
        outcome, head = result.outcome, result.head
        if outcome == "ok":
            self._committed(session_id, records)
        elif outcome == "at" and records[0].seq <= head:
            self._committed(session_id, [record for record in records if record.seq <= head])
        elif outcome in ("full", "sessions"):
            self._refused(session_id, records[0], outcome)
        elif outcome == "fenced":
            await self._fenced(session_id, records)
        else:
            log.error("log_head_mismatch", session=session_id, expected=records[0].seq - 1, head=head)
            self._dropped(session_id)

    async def recount(self) -> None:
        """Ask how much each known owner has: other servers store for them, too."""
        known = [*self._tally.by_owner]
        for start in range(0, len(known), OWNERS_PER_COUNT):
            page = known[start:start + OWNERS_PER_COUNT]
            asked: list[Command] = []
            for owner in page:
                asked.append(("HMGET", self.redis.key("kept", owner), "resources", "bytes"))
                asked.append(("ZCARD", self.redis.key("owner", owner)))
            replies = await self.redis.read_all(asked)
            for owner, (resources, size), sessions in zip(page, replies[::2], replies[1::2], strict=True):
                self._tally.set_usage(owner, "resources", int(resources or 0))
                self._tally.set_usage(owner, "stored_bytes", int(size or 0))
                self._tally.set_usage(owner, "sessions", sessions)
                self._tally.add(owner)

    def _refused(self, session_id: str, first: m.Record, why: str) -> None:
        """There is no room for a new session, here or with its owner."""
        error: GatewayError = SessionLimitReached(too_many_sessions(self._most()))
        if why == "sessions" and isinstance(first.event, m.SessionCreated):
            self._tally.set_usage(first.event.owner, "sessions", self._tally.quota().sessions or 0)
            error = self._tally.limit_error(first.event.owner, "sessions")
        self._waiting.refuse(session_id, error)
        self._dropped(session_id)

    def _committed(self, session_id: str, records: list[m.Record]) -> None:
        left = self._leaving.pop(session_id)[len(records):]
        if left:
            self._leaving[session_id] = left
        if session_id in self._heads:
            self._heads[session_id] = records[-1].seq
        if self.redis.address.wait:
            self._unannounced.append(records)
        self._listener.committed(records)
        self._waiting.resolve(session_id, records[-1].seq)
        if session_id not in self._tokens and not left:
            self._waiting.refuse(session_id, LeaseLost(TAKEN_OVER))  # later records were dropped with the token

    async def _fenced(self, session_id: str, records: list[m.Record]) -> None:
        """Another server writes the session: the log has what an earlier attempt has stored, and not the rest."""
        found = await self.read(session_id, records[0].seq - 1, len(records))
        same = sum(1 for ours, theirs in zip(records, found, strict=False) if is_same_record(ours, theirs))
        if same:
            self._listener.committed(records[:same])
            self._waiting.resolve(session_id, records[same - 1].seq)
        log.warning("lease_lost", session=session_id)
        self._dropped(session_id)

    def _dropped(self, session_id: str) -> None:
        self._leaving.pop(session_id, None)
        self.let_go(session_id)
        if self._lease_listener is not None:
            self._lease_listener.lease_lost(session_id)

    def failed(self, error: GatewayError) -> None:
        """Refuse all who wait for a record, and report the error."""
        self._waiting.refuse_all(error)
        self._listener.failed(error, self._tokens)

    def data_lost(self) -> None:
        """Drop all records that wait to be stored, and report that all sessions are gone."""
        self._tokens, self._heads, self._pending, self._leaving, self._count = {}, {}, {}, {}, 0
        self._lists.clear()
        self._waiting.refuse_all(RedisDataLost("the server has lost its data; begin anew"))
        if self._lease_listener is not None:
            self._lease_listener.data_lost(self.redis.covers)

    def primary_changed(self) -> None:
        """Report it; summaries that the new primary may lack are read again."""
        self._lists.clear()
        if self._lease_listener is not None:
            self._lease_listener.primary_changed(self.redis.covers)

    async def delete_session(self, session_id: str) -> None:
        if not self.is_settled(session_id):
            await self.wait_stored(session_id, self._last(session_id))
        token = self._tokens.get(session_id)
        if token is None:
            return
        try:
            removed = read_removed(await self.redis.run_script("forget", session_id, token))
        except RedisUnreachable as error:
            raise Overloaded(f"nothing can be stored just now: {error.message}") from None
        self._count = removed.session_count
        if removed.outcome == "fenced":
            self._dropped(session_id)
            raise LeaseLost(TAKEN_OVER)
        self._note(removed.usage)
        self.let_go(session_id)

    async def close(self) -> None:
        """Store what is left, if that is possible, and close the connection."""
        self._closing = True
        self._stirred.set()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=self.redis.lease)
            self._writing.cancel()
        await self.redis.close()
