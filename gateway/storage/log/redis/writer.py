"""The writer of the log in Redis: what was taken leaves in groups, under the token of whoever holds the session.

Who waits until which record of a session is stored.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import structlog

import gateway.model as m
from gateway.errors import GatewayError, Overloaded
from gateway.ports import OnCommit, OnTrouble
from gateway.quotas import Quotas
from gateway.storage.redis import Command, RedisClient, RedisDataLost, RedisUnreachable
from gateway.storage.sealing import UNSEALED, Seal

from .reader import RedisLogReader, encode_entry, is_same_record

log = structlog.get_logger("dragoman.log")
WINDOW, RETRY_SECONDS = 0.002, 0.25
"""Seconds that records wait for company, and after which what could not be stored is tried again."""
SESSIONS_PER_SCRIPT = 64
"""How many sessions one step of the server appends to."""
SYNCED_EVENTS = (m.InputRequested, m.TurnEnded)
"""What is on the disk before anybody is shown it, where the settings ask for that."""
DEFAULT_MAX_SESSIONS, OWNERS_PER_COUNT = 1_000_000, 200
"""How many sessions there may be if nobody says so, and of how many owners is asked at once how much they have."""
TAKEN_OVER = "another server has taken the session over; ask again"
OnLost = Callable[[str], None]


class LeaseLost(Overloaded):
    """The session has another writer by now: nothing of this was stored, and whoever asked may ask there."""


class SessionLimitReached(Overloaded):
    """There are as many sessions as there may be: nothing of this one was stored."""


class RedisLog(RedisLogReader):
    """Whoever creates or claims a session holds its token; only the holder's records are taken."""

    def __init__(
        self, redis: RedisClient, *, fsync: bool = False, seal: Seal = UNSEALED, tally: Quotas | None = None,
        most: Callable[[], int] = lambda: DEFAULT_MAX_SESSIONS,
    ) -> None:
        super().__init__(redis, seal)
        self._tally = tally or Quotas()
        self._most = most
        self.on_commit: OnCommit = lambda records: None
        self.on_trouble: OnTrouble = lambda error: None
        self.on_lost: OnLost = lambda session_id: None
        """Told when somebody else turns out to be the writer of a session that was held here."""
        self._fsync = fsync
        self._tokens: dict[str, str] = {}
        self._heads: dict[str, int] = {}
        self._pending: dict[str, list[m.Record]] = {}
        self._leaving: dict[str, list[m.Record]] = {}
        self._waiting = CommitWaiters()
        self._stirred = asyncio.Event()
        self._count = 0
        self._closing = False
        self._writing: asyncio.Task[None] | None = None
        redis.on_trouble = self._troubled
        redis.on_reset.append(self._reset)

    async def open(self) -> None:
        await self.redis.open()
        replies = await self.redis.read_all([("ZCARD", self.redis.key("sessions"))])
        self._count = replies[0]
        self._writing = asyncio.create_task(self._write_on(), name="redis log")

    @property
    def session_count(self) -> int:
        return self._count

    @session_count.setter
    def session_count(self, count: int) -> None:
        self._count = count

    @property
    def write_error(self) -> GatewayError | None:
        return self.redis.trouble

    # -- who writes -----------------------------------------------------------------------------------------------

    def holds(self, session_id: str) -> bool:
        return session_id in self._tokens

    @property
    def held(self) -> Sequence[str]:
        return tuple(self._tokens)

    def hold(self, session_id: str, token: str, head: int) -> None:
        """From now on we write this session."""
        self._tokens[session_id], self._heads[session_id] = token, head

    def let_go(self, session_id: str) -> str | None:
        """From now on we do not; what was not stored is dropped, and who waits for it is told. The token we had."""
        token = self._tokens.pop(session_id, None)
        self._heads.pop(session_id, None)
        self._pending.pop(session_id, None)
        if session_id not in self._leaving:
            self._waiting.refuse(session_id, LeaseLost(TAKEN_OVER))
        return token

    def is_overtaken(self, session_id: str, token: int) -> bool:
        """Whether we hold the session by a token that is older than this."""
        held = self._tokens.get(session_id)
        return held is not None and int(held) < token

    async def flush(self) -> None:
        """Wait until all that was taken is stored, for as long as a lease lasts at most."""
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
            self.hold(session_id, "1", 0)
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
        """One group after the other; a group that could not be stored is tried again, with what has come since."""
        while not self._closing or self._pending:
            await self._stirred.wait()
            self._stirred.clear()
            if not self._closing:
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
                except Exception:  # one session must not keep all the others from being stored
                    lost = tuple(self._leaving)
                    log.exception("records_not_storable", sessions=len(lost))
                    for session_id in lost:
                        self._dropped(session_id)

    def _gather(self) -> bool:
        for session_id, records in self._pending.items():
            self._leaving.setdefault(session_id, []).extend(records)
        self._pending = {}
        return bool(self._leaving)

    async def _write(self) -> None:
        """All that leaves, in one write; each session is told of by itself."""
        batch = {session_id: list(records) for session_id, records in self._leaving.items()}
        ids, calls = list(batch), []
        for start in range(0, len(ids), SESSIONS_PER_SCRIPT):
            own = self._tally.quota().sessions
            given: list[str | bytes | int | float] = [
                self.redis.replica, m.MODEL_VERSION, self._most(), "" if own is None else own]
            for session_id in islice(ids, start, start + SESSIONS_PER_SCRIPT):
                given += encode_entry(session_id, self._tokens.get(session_id, "-"), batch[session_id], self.seal)
            calls.append(("append", given))
        replies = await self.redis.run_scripts(calls, *self._sync(batch))
        self._check_sync(replies[len(calls):])
        self.redis.worked()
        self._count = replies[len(calls) - 1][0]
        told = [one for reply in replies[:len(calls)] for one in reply[1:]]
        for session_id, (outcome, head, *kept) in zip(ids, told, strict=True):
            if kept:
                self._note(*kept)
            await self._told(session_id, batch[session_id], outcome.decode(), int(head))

    def _note(self, owner: bytes, size: int, sessions: int) -> None:
        self._tally.set_usage(owner.decode(errors="surrogatepass"), "stored_bytes", size)
        if sessions >= 0:
            self._tally.set_usage(owner.decode(errors="surrogatepass"), "sessions", sessions)

    def _sync(self, batch: dict[str, list[m.Record]]) -> list[Command]:
        """A write of this connection, and to wait until it is on the disk: so is then all that was written before."""
        if self._fsync and any(
            isinstance(record.event, SYNCED_EVENTS) for records in batch.values() for record in records
        ):
            return [("SET", self.redis.key("synced"), self.redis.replica), ("WAITAOF", 1, 0, self.redis.most_ms)]
        return []

    def _check_sync(self, replies: Sequence[Any]) -> None:
        if replies and replies[-1][0] < 1:
            raise RedisUnreachable(f"Redis at {self.redis.address.shown} does not get to write to its disk")

    async def _told(self, session_id: str, records: list[m.Record], outcome: str, head: int) -> None:
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
        """How much those have by now who have something here: other servers count, too."""
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
        self._leaving.pop(session_id, None)
        error: GatewayError = SessionLimitReached(f"there are {self._most()} sessions already, and no more are allowed")
        if why == "sessions" and isinstance(first.event, m.SessionCreated):
            self._tally.set_usage(first.event.owner, "sessions", self._tally.quota().sessions or 0)
            error = self._tally.limit_error(first.event.owner, "sessions")
        self._waiting.refuse(session_id, error)
        self.let_go(session_id)
        self.on_lost(session_id)

    def _committed(self, session_id: str, records: list[m.Record]) -> None:
        left = self._leaving.pop(session_id)[len(records):]
        if left:
            self._leaving[session_id] = left
        if session_id in self._heads:
            self._heads[session_id] = records[-1].seq
        self.on_commit(records)
        self._waiting.tell(session_id, records[-1].seq)
        if session_id not in self._tokens and not left:
            self._waiting.refuse(session_id, LeaseLost(TAKEN_OVER))  # what came after these was dropped when we let go

    async def _fenced(self, session_id: str, records: list[m.Record]) -> None:
        """Somebody else writes. What an earlier try has stored before that is in the log, and the rest is not."""
        found = await self.read(session_id, records[0].seq - 1, len(records))
        same = sum(1 for ours, theirs in zip(records, found, strict=False) if is_same_record(ours, theirs))
        if same:
            self.on_commit(records[:same])
            self._waiting.tell(session_id, records[same - 1].seq)
        log.warning("lease_lost", session=session_id)
        self._dropped(session_id)

    def _dropped(self, session_id: str) -> None:
        self._leaving.pop(session_id, None)
        self.let_go(session_id)
        self.on_lost(session_id)

    def _troubled(self, why: GatewayError) -> None:
        self._waiting.refuse_all(why)
        self.on_trouble(why)

    def _reset(self) -> None:
        """The data are gone, and what was on its way to them is void."""
        self._tokens, self._heads, self._pending, self._leaving, self._count = {}, {}, {}, {}, 0
        self._waiting.refuse_all(RedisDataLost("the server has lost its data; begin anew"))

    async def delete_session(self, session_id: str) -> None:
        if not self.is_settled(session_id):
            await self.wait_stored(session_id, self._last(session_id))
        token = self._tokens.get(session_id)
        if token is None:
            return
        try:
            outcome, self._count, *kept = await self.redis.run_script("forget", session_id, token)
        except RedisUnreachable as error:
            raise Overloaded(f"nothing can be stored just now: {error.message}") from None
        if outcome == b"fenced":
            self._dropped(session_id)
            raise LeaseLost(TAKEN_OVER)
        if kept:
            self._note(*kept)
        self.let_go(session_id)

    async def close(self) -> None:
        """Store what there is, if that can be."""
        self._closing = True
        self._stirred.set()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=self.redis.lease)
            self._writing.cancel()
        await self.redis.close()


Waiter = tuple[int, asyncio.Future[None]]
"""Up to which record, and who is told."""


class CommitWaiters:
    """Those who wait, by session; each is told once, or has gone."""

    def __init__(self) -> None:
        self._waiters: dict[str, list[Waiter]] = {}

    async def wait(self, session_id: str, seq: int) -> None:
        """Come back when that record is stored; raises why it is not going to be."""
        done = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(session_id, []).append((seq, done))
        await done

    def tell(self, session_id: str, upto: int) -> None:
        """Up to there it is stored."""
        waiting = self._waiters.pop(session_id, [])
        later = [waiter for waiter in waiting if waiter[0] > upto]
        if later:
            self._waiters[session_id] = later
        for seq, done in waiting:
            if seq <= upto and not done.done():
                done.set_result(None)

    def refuse(self, session_id: str, error: GatewayError) -> None:
        for _, done in self._waiters.pop(session_id, ()):
            if not done.done():
                done.set_exception(error)

    def refuse_all(self, error: GatewayError) -> None:
        for session_id in list(self._waiters):
            self.refuse(session_id, error)
