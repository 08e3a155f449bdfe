"""The log in a Redis Cluster: a log for each partition, and lists that merge what the partitions have."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ports import ListedSession, ListOrder, LogListener, SessionHead
from gateway.quotas import PartQuotas, Quotas, StoreTally
from gateway.storage.redis import RedisPartitions
from gateway.storage.sealing import UNSEALED, Seal

from .commit_outcomes import LeaseListener
from .writer import DEFAULT_MAX_SESSIONS, RedisLog

T = TypeVar("T")
BEATS_PER_RECOUNT = 8
"""Over how many heartbeats the owners are counted anew: each time in so many of the partitions."""


class PartitionedLog:
    """Each session is in the log of its partition, which stores and lists it; the lists of all are merged here."""

    def __init__(
        self, redis: RedisPartitions, *, fsync: bool = False, seal: Seal = UNSEALED,
        tallies: Sequence[StoreTally] | None = None, most: Callable[[], int] = lambda: DEFAULT_MAX_SESSIONS,
    ) -> None:
        tallies = tallies or [PartQuotas(Quotas()) for _ in redis.parts]
        self.redis, self.seal = redis, seal
        self.parts: Sequence[RedisLog] = [
            RedisLog(part, fsync=fsync, seal=seal, tally=tally, most=partial(self._room, number))
            for number, (part, tally) in enumerate(zip(redis.parts, tallies, strict=True))]
        self._most = most
        self._recounted = 0

    def _room(self, number: int) -> int:
        """How many sessions there may be in a partition, when the others have as many as they have."""
        return self._most() - self.session_count + self.parts[number].session_count

    def part_of(self, session_id: str) -> RedisLog:
        return self.parts[self.redis.number_of(session_id)]

    def attach(self, listener: LogListener, leases: LeaseListener | None = None) -> None:
        for part in self.parts:
            part.attach(listener, leases)

    async def open(self) -> None:
        await self.redis.open()
        await asyncio.gather(*(part.start() for part in self.parts))

    async def close(self) -> None:
        await asyncio.gather(*(part.close() for part in self.parts))
        await self.redis.close()

    async def flush(self) -> None:
        await asyncio.gather(*(part.flush() for part in self.parts))

    @property
    def session_count(self) -> int:
        return sum(part.session_count for part in self.parts)

    @property
    def write_error(self) -> GatewayError | None:
        """Why nothing can be stored in any partition."""
        errors = [part.write_error for part in self.parts]
        return errors[0] if all(error is not None for error in errors) else None

    async def recount(self) -> None:
        """Ask how much each known owner has, in some of the partitions: in all of them after some heartbeats."""
        number = -(-len(self.parts) // BEATS_PER_RECOUNT)
        start, self._recounted = self._recounted, (self._recounted + number) % len(self.parts)
        await asyncio.gather(*(part.recount() for part in self.parts[start:start + number]))

    # -- one session ----------------------------------------------------------------------------------------------

    def error_of(self, session_id: str) -> GatewayError | None:
        return self.part_of(session_id).write_error

    def append(self, record: m.Record) -> None:
        self.part_of(record.session_id).append(record)

    def append_deltas(self, records: Sequence[m.Record]) -> None:
        self.part_of(records[0].session_id).append_deltas(records)

    async def wait_stored(self, session_id: str, seq: int) -> None:
        await self.part_of(session_id).wait_stored(session_id, seq)

    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[m.Record]:
        return await self.part_of(session_id).read(session_id, after, limit)

    async def read_without_deltas(
        self, session_id: str, after: int = 0, upto: int | None = None,
    ) -> Sequence[m.Record]:
        return await self.part_of(session_id).read_without_deltas(session_id, after, upto)

    async def since(self, session_id: str, after: int) -> list[m.Record] | None:
        return await self.part_of(session_id).since(session_id, after)

    async def head(self, session_id: str) -> SessionHead | None:
        return await self.part_of(session_id).head(session_id)

    async def delete_session(self, session_id: str) -> None:
        await self.part_of(session_id).delete_session(session_id)

    # -- who writes -----------------------------------------------------------------------------------------------

    def holds(self, session_id: str) -> bool:
        return self.part_of(session_id).holds(session_id)

    @property
    def held(self) -> Sequence[str]:
        return [*chain.from_iterable(part.held for part in self.parts)]

    def hold(self, session_id: str, token: str, head: int) -> None:
        self.part_of(session_id).hold(session_id, token, head)

    def let_go(self, session_id: str) -> str | None:
        return self.part_of(session_id).let_go(session_id)

    def is_overtaken(self, session_id: str, token: int) -> bool:
        return self.part_of(session_id).is_overtaken(session_id, token)

    def is_settled(self, session_id: str) -> bool:
        return self.part_of(session_id).is_settled(session_id)

    # -- lists ----------------------------------------------------------------------------------------------------

    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        async def page(part: RedisLog, last: SessionHead | None, most: int) -> Sequence[SessionHead]:
            low, high = after, before
            if last is not None:
                low, high = (last.ordinal, before) if oldest_first else (after, last.ordinal)
            return await part.sessions(owner, high, most, after=low, oldest_first=oldest_first)

        return await self._merge(page, lambda one: one.ordinal if oldest_first else -one.ordinal, limit)

    async def sessions_in_turn(self, owner: str | None = None) -> Sequence[SessionHead]:
        found = await self._all(lambda part: part.sessions_in_turn(owner))
        return sorted(chain.from_iterable(found), key=lambda one: one.ordinal)

    async def listed(
        self, owner: str, label: str, order: ListOrder, *, offset: int = 0, limit: int = 50,
    ) -> Sequence[ListedSession]:
        if limit <= 0:
            return []
        ranks = dict.fromkeys(self.parts, 0)

        async def page(part: RedisLog, last: ListedSession | None, most: int) -> Sequence[ListedSession]:
            start = ranks[part]
            ranks[part] += most
            return await part.listed(owner, label, order, offset=start, limit=most)

        def place(one: ListedSession) -> float:
            return -one.ordinal if order == "created" else -one.summary.updated_at

        return (await self._merge(page, place, offset + limit))[offset:]

    async def mentioning(self, owner: str, text: str) -> Sequence[ListedSession] | None:
        found = await self._all(lambda part: part.mentioning(owner, text))
        rows = [rows for rows in found if rows is not None]
        if len(rows) < len(found):
            return None
        return sorted(chain.from_iterable(rows), key=lambda one: one.ordinal, reverse=True)

    async def created_between(
        self, owner: str, first: float, last: float, limit: int,
    ) -> Sequence[ListedSession] | None:
        found = await self._all(lambda part: part.created_between(owner, first, last, limit))
        rows = [rows for rows in found if rows is not None]
        if len(rows) < len(found):
            return None
        return sorted(chain.from_iterable(rows), key=lambda one: (one.summary.created_at, one.ordinal))[:limit]

    async def count_listed(self, owner: str, label: str) -> int:
        return sum(await self._all(lambda part: part.count_listed(owner, label)))

    async def session_of(self, word: str) -> str | None:
        return next((one for one in await self._all(lambda part: part.session_of(word)) if one is not None), None)

    async def _all(self, ask: Callable[[RedisLog], Awaitable[T]]) -> list[T]:
        """Ask all partitions, with one write to each node."""
        return await asyncio.gather(*map(ask, self.parts))

    async def _merge(
        self, page: Callable[[RedisLog, T | None, int], Awaitable[Sequence[T]]], place: Callable[[T], float],
        limit: int,
    ) -> list[T]:
        """The first rows of the lists of all partitions together, each of which is sorted by `place`.

        Each partition is asked for about its share of the rows; if all of them are among the first, for more.
        """
        most = min(limit, 4 + 2 * limit // len(self.parts))
        found, lasts, asked = list[T](), dict[RedisLog, T](), [*self.parts]
        while asked:
            pages = await asyncio.gather(*(page(part, lasts.get(part), most) for part in asked))
            found = sorted(chain(found, *pages), key=place)[:limit]
            full = [(part, rows[-1]) for part, rows in zip(asked, pages, strict=True) if len(rows) == most]
            lasts.update(full)
            asked = [part for part, last in full if len(found) < limit or place(last) < place(found[-1])]
        return found
