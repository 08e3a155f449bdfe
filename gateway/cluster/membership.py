"""Being one of several servers: a lease that is renewed while we live, and the leadership of one of them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from gateway.errors import GatewayError
from gateway.storage.redis import RedisClient, RedisUnreachable

log = structlog.get_logger("dragoman.cluster")

BEATS_PER_LEASE = 3
"""How often a lease is renewed before it would run out."""


class Membership:
    """One lease for all that a server holds: while it is good, nobody else claims a session of ours.

    Redis decides who may write, by tokens; the lease merely says how long others wait. `doubted` is awaited when ours
    may have run out, and finds out what was lost meanwhile; `beaten` after every beat; `missed` is told of each that
    came to nothing.
    """

    def __init__(
        self, redis: RedisClient, doubted: Callable[[], Awaitable[None]], beaten: Callable[[], Awaitable[None]],
        missed: Callable[[], None],
    ) -> None:
        self.leads = False
        self.sessions = 0
        self._redis = redis
        self._doubted = doubted
        self._beaten = beaten
        self._missed = missed
        self._good_until = 0.0
        self._beaten_at = self._redis.clock()
        self._missing_since: float | None = None
        self._steady_since = self._redis.clock()
        self._beating = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_good(self) -> bool:
        return self._redis.clock() < self._good_until

    @property
    def is_leader(self) -> bool:
        return self.leads and self.is_good

    @property
    def is_steady(self) -> bool:
        """Whether the others have had time to come back, if we were all away."""
        return self.is_good and self._redis.clock() - self._steady_since > self._redis.lease

    @property
    def has_slept(self) -> bool:
        """Whether our last beat is so long ago that others have taken what is ours, and we do not know yet."""
        return self._redis.clock() - self._beaten_at > self._redis.lease

    @property
    def silence(self) -> float:
        """For how many seconds beats have come to nothing; while we slept ourselves, there were none."""
        return 0.0 if self._missing_since is None else self._redis.clock() - self._missing_since

    def doubt(self) -> None:
        self._good_until = 0.0

    async def sure(self) -> None:
        """Come back when what we hold is ours; raises `RedisUnreachable` if that cannot be known."""
        if not self.is_good:
            async with self._beating:
                if not self.is_good:
                    await self._beat()

    async def beat(self) -> None:
        async with self._beating:
            await self._beat()

    async def keep_on(self) -> None:
        """Beat if it is time to: for work between two beats that may take long."""
        if self._redis.clock() - self._beaten_at > self._redis.lease / BEATS_PER_LEASE:
            await self.beat()

    async def _beat(self) -> None:
        sent, was_good = self._redis.clock(), self.is_good
        good, leads, self.sessions = await self._redis.run_script(
            "beat", self._redis.replica, round(self._redis.lease * 1000))
        self._redis.worked()
        self._missing_since = None
        if not good or not was_good:
            self._steady_since = self._redis.clock()
            await self._doubted()
        self._beaten_at, self._good_until, self.leads = sent, sent + self._redis.lease, bool(leads)

    # -- from now on ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="lease")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._redis.lease / BEATS_PER_LEASE)
            try:
                await self.beat()
                await self._beaten()
            except RedisUnreachable as error:
                self._missing_since = self._redis.clock() if self._missing_since is None else self._missing_since
                self._redis.failed(error)
                self._missed()
            except GatewayError as error:
                log.warning("heartbeat_failed", error=error.message)
            except Exception:  # the lease is renewed, whatever is wrong with one session
                log.exception("heartbeat_failed")

    async def stop(self) -> None:
        """Say goodbye, so that nobody waits for the lease to run out."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        with suppress(GatewayError):
            await self._redis.run_script("leave", self._redis.replica)
        self.doubt()
