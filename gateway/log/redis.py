"""The log in Redis, which many servers share: one stream per session, and one writer at a time, held to it by a token.

What one moment has of one session is one entry of its stream, under the number of its last record, so that an entry
can neither be there twice nor be missing unnoticed. All sessions of a moment go to the server in one write, and each is
appended by one step of a script: the writer's token, the head it expects, the entry, the places and the wake-up. A
write whose reply was lost is sent again, and the head tells how much of it was there already.

What is promised depends on the server: with `appendonly yes` and `appendfsync everysec`, what a client has seen
survives the death of every gateway, and of Redis itself; if the machine under Redis dies, up to a second of it may be
lost. With `durability: fsync` (WAITAOF), no ask and no end of a turn that a client has seen is lost even then.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec
import structlog

from gateway.errors import GatewayError, Overloaded
from gateway.model import MODEL_VERSION, InputRequested, Record, SessionCreated, TurnEnded
from gateway.ports import OnCommit, OnTrouble, SessionHead
from gateway.storage.redis import Command, Redis, Reset, Unreachable

from .segments import in_turn_after, parted, word_of

log = structlog.get_logger("dragoman.log")

_encode = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder(Record).decode_lines
_one = msgspec.json.Encoder().encode

WINDOW, AGAIN = 0.002, 0.25
"""Seconds that records wait for company, and after which what could not be stored is tried again."""
AT_ONCE, PAGE = 64, 256
"""How many sessions one step of the server appends to, and how many entries are read at once."""
SYNC = (InputRequested, TurnEnded)
"""What is on the disk before anybody is shown it, where the settings ask for that."""

TAKEN = "another server has taken the session over; ask again"

OnLost = Callable[[str], None]
Waiter = tuple[int, asyncio.Future[None]]
"""Up to which record, and who is told."""


class Lost(Overloaded):
    """The session has another writer by now: nothing of this was stored, and whoever asked may ask there."""


def decode(lines: bytes) -> list[Record]:
    """The records of one entry, in order."""
    records: list[Record] = _decode(lines)
    records.sort(key=_seq)
    return records


class RedisLog:
    """Whoever creates or claims a session holds its token; only the holder's records are taken."""

    def __init__(self, redis: Redis, *, fsync: bool = False) -> None:
        self.on_commit: OnCommit = lambda records: None
        self.on_trouble: OnTrouble = lambda error: None
        self.on_lost: OnLost = lambda session_id: None
        """Told when somebody else turns out to be the writer of a session that was held here."""
        self.redis = redis
        self._fsync = fsync
        self._tokens: dict[str, str] = {}
        self._heads: dict[str, int] = {}
        self._pending: dict[str, list[Record]] = {}
        self._leaving: dict[str, list[Record]] = {}
        self._waiting: dict[str, list[Waiter]] = {}
        self._stirred = asyncio.Event()
        self._count = 0
        self._closing = False
        self._writing: asyncio.Task[None] | None = None
        redis.on_trouble = self._troubled
        redis.on_reset.append(self._reset)

    async def open(self) -> None:
        await self.redis.open()
        replies = await self.redis.look_all([("ZCARD", self.redis.key("sessions"))])
        self._count = replies[0]
        self._writing = asyncio.create_task(self._write_on(), name="redis log")

    @property
    def size(self) -> int:
        return self._count

    @size.setter
    def size(self, count: int) -> None:
        self._count = count

    @property
    def trouble(self) -> GatewayError | None:
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
            self._refuse(session_id, Lost(TAKEN))
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
                        await self.settled(session_id, self._last(session_id))
        except (TimeoutError, GatewayError):
            log.warning("not everything could be stored before the end", sessions=len(self._leaving))

    def _last(self, session_id: str) -> int:
        return (self._pending.get(session_id) or self._leaving[session_id])[-1].seq

    def is_settled(self, session_id: str) -> bool:
        return session_id not in self._pending and session_id not in self._leaving

    # -- writing --------------------------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        session_id = record.session_id
        records = self._pending.get(session_id)
        if records is not None:
            records.append(record)
            return
        if session_id not in self._tokens:
            if record.seq != 1:
                raise Lost(TAKEN)
            self.hold(session_id, "1", 0)
        self._pending[session_id] = [record]
        self._stirred.set()

    async def settled(self, session_id: str, seq: int) -> None:
        if self._heads.get(session_id, -1) >= seq:
            return
        if self.is_settled(session_id):
            raise Lost(TAKEN)
        if self.trouble is not None:
            raise self.trouble
        done = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session_id, []).append((seq, done))
        await done

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
                except Reset:
                    break
                except Unreachable as error:
                    self.redis.failed(error)
                    if self._closing:
                        return
                    await asyncio.sleep(min(AGAIN, self.redis.patience / 2))

    def _gather(self) -> bool:
        for session_id, records in self._pending.items():
            self._leaving.setdefault(session_id, []).extend(records)
        self._pending = {}
        return bool(self._leaving)

    async def _write(self) -> None:
        """All that leaves, in one write; each session is told of by itself."""
        batch = {session_id: list(records) for session_id, records in self._leaving.items()}
        ids, calls = list(batch), []
        for start in range(0, len(ids), AT_ONCE):
            given: list[str | bytes | int | float] = [self.redis.replica, MODEL_VERSION]
            for session_id in islice(ids, start, start + AT_ONCE):
                given += self._entry(session_id, batch[session_id])
            calls.append(("append", given))
        replies = await self.redis.change_all(calls, *self._sync(batch))
        self.redis.worked()
        self._count = replies[len(calls) - 1][0]
        told = [one for reply in replies[:len(calls)] for one in reply[1:]]
        self._check_sync(replies[len(calls):])
        for session_id, (outcome, head) in zip(ids, told, strict=True):
            await self._told(session_id, batch[session_id], outcome.decode(), int(head))

    def _entry(self, session_id: str, records: list[Record]) -> list[str | bytes | int | float]:
        spine, deltas = parted(records)
        words = [word for record in spine if (word := word_of(record)) is not None]
        now, first = in_turn_after(records), records[0]
        owner = first.event.owner if isinstance(first.event, SessionCreated) else ""
        return [
            session_id, self._tokens.get(session_id, "-"), first.seq - 1, records[-1].seq, "" if now is None else now,
            owner, _encode(spine), _encode(deltas), len(words), *words,
        ]

    def _sync(self, batch: dict[str, list[Record]]) -> list[Command]:
        """A write of this connection, and to wait until it is on the disk: so is then all that was written before."""
        if self._fsync and any(isinstance(record.event, SYNC) for records in batch.values() for record in records):
            return [("SET", self.redis.key("synced"), self.redis.replica), ("WAITAOF", 1, 0, self.redis.most_ms)]
        return []

    def _check_sync(self, replies: Sequence[Any]) -> None:
        if replies and replies[-1][0] < 1:
            raise Unreachable(f"Redis at {self.redis.address.shown} does not get to write to its disk")

    async def _told(self, session_id: str, records: list[Record], outcome: str, head: int) -> None:
        if outcome == "ok":
            self._committed(session_id, records)
        elif outcome == "at" and records[0].seq <= head:
            self._committed(session_id, [record for record in records if record.seq <= head])
        elif outcome == "fenced":
            await self._fenced(session_id, records)
        else:
            log.error("the log does not have what it had", session=session_id, expected=records[0].seq - 1, head=head)
            self._dropped(session_id)

    def _committed(self, session_id: str, records: list[Record]) -> None:
        left = self._leaving.pop(session_id)[len(records):]
        if left:
            self._leaving[session_id] = left
        if session_id in self._heads:
            self._heads[session_id] = records[-1].seq
        self.on_commit(records)
        self._tell(session_id, records[-1].seq)

    async def _fenced(self, session_id: str, records: list[Record]) -> None:
        """Somebody else writes. What an earlier try has stored before that is in the log, and the rest is not."""
        found = await self.read(session_id, records[0].seq - 1, len(records))
        same = sum(1 for ours, theirs in zip(records, found, strict=False) if _one(ours) == _one(theirs))
        if same:
            self.on_commit(records[:same])
            self._tell(session_id, records[same - 1].seq)
        log.warning("another server has taken a session over", session=session_id)
        self._dropped(session_id)

    def _dropped(self, session_id: str) -> None:
        self._leaving.pop(session_id, None)
        self.let_go(session_id)
        self.on_lost(session_id)

    def _tell(self, session_id: str, upto: int) -> None:
        """Up to there it is stored."""
        waiting = self._waiting.pop(session_id, [])
        later = [waiter for waiter in waiting if waiter[0] > upto]
        if later:
            self._waiting[session_id] = later
        for seq, done in waiting:
            if seq <= upto and not done.done():
                done.set_result(None)

    def _refuse(self, session_id: str, error: GatewayError) -> None:
        for _, done in self._waiting.pop(session_id, ()):
            if not done.done():
                done.set_exception(error)

    def _troubled(self, why: GatewayError) -> None:
        for session_id in list(self._waiting):
            self._refuse(session_id, why)
        self.on_trouble(why)

    def _reset(self) -> None:
        """The data are gone, and what was on its way to them is void."""
        self._tokens, self._heads, self._pending, self._leaving, self._count = {}, {}, {}, {}, 0
        for session_id in list(self._waiting):
            self._refuse(session_id, Reset("the server has lost its data; begin anew"))

    async def forget(self, session_id: str) -> None:
        if not self.is_settled(session_id):
            await self.settled(session_id, self._last(session_id))
        token = self._tokens.get(session_id)
        if token is None:
            return
        try:
            outcome, self._count = await self.redis.change("forget", session_id, token)
        except Unreachable as error:
            raise Overloaded(f"nothing can be stored just now: {error.message}") from None
        if outcome == b"fenced":
            self._dropped(session_id)
            raise Lost(TAKEN)
        self.let_go(session_id)

    async def close(self) -> None:
        """Store what there is, if that can be."""
        self._closing = True
        self._stirred.set()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=self.redis.lease)
            self._writing.cancel()
        await self.redis.close()

    # -- reading --------------------------------------------------------------------------------------------------

    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[Record]:
        return await self._read_on(session_id, after, limit)

    async def _read_on(self, session_id: str, after: int, limit: int | None) -> list[Record]:
        found: list[Record] = []
        key = self.redis.key("log", session_id)
        while limit is None or len(found) < limit:
            count = PAGE if limit is None else min(PAGE, limit - len(found))
            entries = (await self.redis.look_all([("XRANGE", key, after + 1, "+", "COUNT", count)]))[0]
            for _, fields in entries:
                records = decode(fields[3] + fields[5])
                found += records if records[0].seq > after else [one for one in records if one.seq > after]
            if len(entries) < count:
                break
            after = found[-1].seq
        return found if limit is None else found[:limit]

    async def since(self, session_id: str, after: int) -> list[Record] | None:
        """What is there after that record; None if there is no such session, or not so much of it."""
        head = (await self.redis.look_all([("HGET", self.redis.key("s", session_id), "head")]))[0]
        if head is None or int(head) < after:
            return None
        return [] if int(head) == after else await self._read_on(session_id, after, None)

    async def spine(self, session_id: str) -> Sequence[Record]:
        found, place = list[Record](), "0"
        while True:
            page = await self.redis.look("spine", session_id, place, PAGE)
            found += [record for lines in page[1:] for record in _decode(lines)]
            if len(page) <= PAGE:
                return found
            place = page[0].decode()

    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        place = "sessions" if owner is None else f"owner:{owner}"
        low, high = "-inf" if after is None else f"({after}", "+inf" if before is None else f"({before}"
        return _heads(await self.redis.look("list", place, low, high, limit, "" if oldest_first else "REV"))

    async def unfinished(self, owner: str | None = None) -> Sequence[SessionHead]:
        return _heads(await self.redis.look("list", "open", *(() if owner is None else (owner,))))

    async def head(self, session_id: str) -> SessionHead | None:
        fields = ("owner", "ordinal", "head", "in_turn")
        row = (await self.redis.look_all([("HMGET", self.redis.key("s", session_id), *fields)]))[0]
        return None if row[0] is None else _heads([[session_id.encode(), *row]])[0]

    async def place_of(self, word: str) -> str | None:
        found = (await self.redis.look_all([("HGET", self.redis.key("places"), word)]))[0]
        return None if found is None else str(found.decode())


def _heads(rows: Iterable[Any]) -> list[SessionHead]:
    return [
        SessionHead(
            session_id=session_id.decode(), owner=owner.decode(), ordinal=int(ordinal), head=int(head),
            in_turn=at_work == b"1",
        )
        for session_id, owner, ordinal, head, at_work in rows
    ]


def _seq(record: Record) -> int:
    return record.seq
