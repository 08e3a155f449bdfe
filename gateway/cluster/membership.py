"""Membership of this server in the cluster: its lease, the heartbeat that renews the lease, and the leader."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import structlog

from gateway.errors import GatewayError
from gateway.storage.redis import RedisClient, RedisUnreachable, SharedRedis, read_renewal
from gateway.supervision import keep_running

log = structlog.get_logger("dragoman.cluster")

BEATS_PER_LEASE = 3
"""How often a lease is renewed before it would run out."""


class Lease:
    """One lease for all sessions of a server in one part of Redis: while it is good, no other server claims them.

    Redis decides by tokens which server may write a session; the lease only says how long the others wait. `verify` is
    awaited when the lease may have run out, and finds out which sessions were lost meanwhile.
    """

    def __init__(
        self, redis: RedisClient, verify: Callable[[], Awaitable[None]], report: Callable[[], bytes] = lambda: b"1",
    ) -> None:
        self.session_count = 0
        """How many sessions all servers have together."""
        self.is_to_drain = False
        """Whether an operator has asked this server to drain and stop."""
        self.redis_ms = 0.0
        """How many milliseconds Redis took for the last renewal."""
        self._report = report
        self.interval = redis.lease / BEATS_PER_LEASE
        """Seconds between two renewals."""
        self._redis = redis
        self._verify = verify
        self._leads = False
        self._good_until = 0.0
        self._renewed_at = redis.clock()
        self._missing_since: float | None = None
        self._steady_since = redis.clock()
        self._renewing = asyncio.Lock()

    @property
    def is_good(self) -> bool:
        return self._redis.clock() < self._good_until

    @property
    def is_leader(self) -> bool:
        return self._leads and self.is_good

    @property
    def is_steady(self) -> bool:
        """Whether the lease has been good for so long that other servers have had time to renew theirs."""
        is_old = self._redis.clock() - self._steady_since > self._redis.lease
        return self.is_good and is_old and self._missing_since is None

    @property
    def has_slept(self) -> bool:
        """Whether the last renewal is so long ago that other servers may have claimed sessions of this one."""
        return self._redis.clock() - self._renewed_at > self._redis.lease

    @property
    def silence(self) -> float:
        """For how many seconds renewals have failed; a server that slept has not tried to renew its lease."""
        return 0.0 if self._missing_since is None else self._redis.clock() - self._missing_since

    def mark_doubtful(self) -> None:
        """Note that the lease may have run out, so that it is renewed before a session is claimed or read."""
        self._good_until = 0.0

    async def ensure_good(self) -> None:
        """Renew the lease if it is not known to be good; raises `RedisUnreachable` if Redis does not answer."""
        if not self.is_good:
            async with self._renewing:
                if not self.is_good:
                    await self._renew()

    async def renew(self) -> None:
        async with self._renewing:
            await self._renew()

    async def renew_if_due(self) -> None:
        """Renew the lease if it is time to: called within work that may take longer than a lease."""
        if self._redis.clock() - self._renewed_at > self.interval:
            await self.renew()

    async def _renew(self) -> None:
        sent, was_good = self._redis.clock(), self.is_good
        renewal = read_renewal(await self._redis.run_script(
            "beat", self._redis.replica, round(self._redis.lease * 1000), self._report()))
        self.redis_ms = (self._redis.clock() - sent) * 1000
        self.session_count, self.is_to_drain = renewal.session_count, renewal.is_to_drain
        self._redis.worked()
        self._missing_since = None
        if not renewal.was_good or not was_good:
            self._steady_since = self._redis.clock()
            await self._verify()
        self._renewed_at, self._good_until, self._leads = sent, sent + self._redis.lease, renewal.leads

    def renewal_failed(self, error: RedisUnreachable) -> None:
        """Redis did not answer."""
        self._missing_since = self._redis.clock() if self._missing_since is None else self._missing_since
        self._redis.failed(error)

    async def end(self) -> None:
        """Give the lease back, so that no other server waits for it to run out."""
        with suppress(GatewayError):
            await self._redis.run_script("leave", self._redis.replica)
        self.mark_doubtful()


class Leases:
    """The leases of a server, one in each part of Redis: the loss of one part leaves those of the others good."""

    def __init__(
        self, redis: SharedRedis, verify: Callable[[RedisClient], Awaitable[None]],
        report: Callable[[], bytes] = lambda: b"1",
    ) -> None:
        self._redis = redis
        self.parts = [Lease(part, partial(verify, part), *(() if number else (report,)))
                      for number, part in enumerate(redis.parts)]
        self._by_part = dict(zip(redis.parts, self.parts, strict=True))
        self.first = self.parts[0]
        """The one that says who leads, and who is to drain."""
        self.interval = self.first.interval

    def of(self, session_id: str) -> Lease:
        return self.parts[self._redis.number_of(session_id)]

    def in_part(self, part: RedisClient) -> Lease:
        return self._by_part[part]

    @property
    def session_count(self) -> int:
        return sum(lease.session_count for lease in self.parts)

    def mark_doubtful(self) -> None:
        for lease in self.parts:
            lease.mark_doubtful()

    async def renew(self) -> None:
        """Renew all leases; raises `RedisUnreachable` if a part does not answer."""
        await asyncio.gather(*(lease.renew() for lease in self.parts))

    async def renew_reachable(self) -> int:
        """Renew the leases of those parts that answer; return how many do not."""
        return sum(await asyncio.gather(*map(self._has_failed, self.parts)))

    async def _has_failed(self, lease: Lease) -> bool:
        try:
            await lease.renew()
        except RedisUnreachable as error:
            lease.renewal_failed(error)
            return True
        return False

    async def end(self) -> None:
        await asyncio.gather(*(lease.end() for lease in self.parts))


class Heartbeat:
    """Renews the leases while the server lives; `beaten` is awaited after that, `missed` is called if one failed."""

    def __init__(self, leases: Leases, beaten: Callable[[], Awaitable[None]], missed: Callable[[], None]) -> None:
        self._leases = leases
        self._beaten = beaten
        self._missed = missed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(keep_running(self._beat, self._failed), name="heartbeat")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._leases.interval)
            try:
                failed = await self._leases.renew_reachable()
                if failed:
                    self._missed()
                if failed < len(self._leases.parts):
                    await self._beaten()
            except RedisUnreachable:
                self._missed()
            except GatewayError as error:
                log.warning("heartbeat_failed", error=error.message)

    def _failed(self, error: BaseException) -> None:
        log.error("lease_renewal_failed", exc_info=error)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
