"""The sessions that this server, of several, writes: claimed, kept while the lease is good, lost or released."""

import asyncio
import secrets
from collections.abc import Coroutine, Sequence

import structlog

from gateway.engine import Hub, Runtime, SessionCache, SessionTable
from gateway.errors import GatewayError, Overloaded
from gateway.storage.log.redis import LeaseLost, SharedLog
from gateway.storage.redis import RedisClient, RedisUnreachable, read_claim, read_session_ids
from gateway.supervision import take_error

from .membership import Leases
from .stream_relay import SessionChannels, StreamRelay

log = structlog.get_logger("dragoman.cluster")

ORPHANS_PER_CLAIM = 32
"""How many sessions of a dead server are taken over at a time; the other servers take over the rest."""
MAX_CLAIM_TIMES = 10_000
"""For how many sessions the time of their claim is remembered."""
TOKEN_STEP_BYTES = 3
"""A token is greater than the one before by a random number: if a failover loses a claim, no other gets its token."""
PAGE = 500
"""How many tokens are compared with Redis in one request."""


class OwnerUnknown(Overloaded):
    """It is not known just now which server writes the session."""


class HeldSessions:
    """The sessions that this server writes; for each it holds a token, without which Redis stores no records."""

    def __init__(
        self, runtime: Runtime, table: SessionTable, hub: Hub, log: SharedLog, channels: SessionChannels,
        relay: StreamRelay,
    ) -> None:
        self.holds = log.holds
        self.doubtful: dict[str, None] = {}
        """Sessions that this server may have claimed without knowing it: no other server would close their turns."""
        self._runtime = runtime
        self._table = table
        self._hub = hub
        self._log = log
        self._redis = log.redis
        self._channels = channels
        self._relay = relay
        self._releases: set[asyncio.Task[object]] = set()

    async def before_load(self, session_id: str) -> None:
        """Bring the subscribers up to date before this server appends anything; raises `LeaseLost`."""
        if not self.holds(session_id):
            raise LeaseLost("another server has taken the session over; ask again")
        if (shown := self._hub.head_of(session_id)) is not None:
            self._relay.relay(session_id, await self._log.read(session_id, shown))
        self._channels.ignore(session_id)

    def evicted(self, session_id: str) -> None:
        """Release the session, which nobody has used for long: the server that needs it next claims it."""
        if (token := self._log.let_go(session_id)) is not None:
            self._spawn(self._release(session_id, token))

    async def _release(self, session_id: str, token: str) -> None:
        await self._redis.part_of(session_id).run_script("release", self._redis.replica, session_id, token)

    async def hand_over(self, session_id: str) -> None:
        """Release a session in which no turn runs; its subscribers here follow its next writer."""
        session = self._table.get(session_id)
        if session is None or session.run is not None or not self._log.is_settled(session_id):
            return
        token = self._log.let_go(session_id)
        if token is not None:
            self.drop_copy(session_id)
            self._relay.read_again(session_id)
            await self._release(session_id, token)

    async def hand_over_all(self) -> None:
        """Release all idle sessions; if Redis does not answer, the other servers wait until the lease has run out."""
        try:
            for session_id in self._log.held:
                await self.hand_over(session_id)
        except GatewayError as error:
            log.warning("handover_failed", error=error.message)

    def lose(self, session_id: str) -> None:
        """Another server writes the session: its turn here stops silently, and its subscribers follow that server."""
        self._log.let_go(session_id)
        session = self._table.remove(session_id)
        if session is not None and session.run is not None:
            session.run.abandon()
        self._runtime.replacement_backends.pop(session_id, None)
        self._relay.read_again(session_id)

    def lose_if_overtaken(self, session_id: str, token: int) -> None:
        """Lose the session if the token of another server is newer."""
        if self._log.is_overtaken(session_id, token):
            self.lose(session_id)

    def drop_copy(self, session_id: str) -> None:
        """Forget what is in memory of a session that this server does not write."""
        if not self.holds(session_id):
            self._table.remove(session_id)

    async def verify(self, part: RedisClient) -> None:
        """A lease may have run out, or Redis was away: lose the sessions that it does not have as this server does.

        Another server may have claimed or deleted a session meanwhile. A Redis that comes back without its last moments
        may have lost the end of a turn; this server claims such a session again, and closes the turn.
        """
        [log] = [one for one in self._log.parts if one.redis is part]
        held = log.held
        for start in range(0, len(held), PAGE):
            page = held[start:start + PAGE]
            ours = [(log.token_of(one), log.stored_head(one)) for one in page]
            rows = await part.read_all([("HMGET", part.key("s", one), "token", "head") for one in page])
            for session_id, (held_by, stored), (token, head) in zip(page, ours, rows, strict=True):
                if token is not None and int(head) >= stored:
                    if token.decode() != held_by == log.token_of(session_id):
                        self.lose(session_id)
                elif stored:
                    self.lose(session_id)
                    if token is not None:
                        self.doubtful[session_id] = None

    def _spawn(self, release: Coroutine[object, None, object]) -> None:
        task = asyncio.create_task(release)
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def close(self) -> None:
        for release in self._releases:
            release.cancel()


class Claims:
    """Finds the server that writes a session, and claims sessions that no server writes."""

    def __init__(
        self, runtime: Runtime, cache: SessionCache, log: SharedLog, held: HeldSessions, leases: Leases,
    ) -> None:
        self._runtime = runtime
        self._cache = cache
        self._log = log
        self._redis = log.redis
        self._held = held
        self._leases = leases
        self._claiming: dict[str, asyncio.Future[str | None]] = {}
        self._claimed_at: dict[str, float] = {}
        """When this server claimed its sessions, in the loop's time."""

    async def owner_of(self, session_id: str) -> str | None:
        """The server that writes the session; None if it is this server, which claims the session if it has to."""
        if self._held.holds(session_id):
            await self._leases.of(session_id).ensure_good()
            if self._held.holds(session_id):
                return None
        claiming = self._claiming.get(session_id)
        if claiming is None:
            claiming = self._claiming[session_id] = asyncio.ensure_future(self._claim(session_id))
            claiming.add_done_callback(lambda done: self._claiming.pop(session_id, None))
            claiming.add_done_callback(take_error)
        return await asyncio.shield(claiming)

    async def _claim(self, session_id: str) -> str | None:
        if self._runtime.is_draining:
            raise OwnerUnknown("the server is about to stop")
        if not self._log.is_settled(session_id):
            raise OwnerUnknown("the session has just moved to another server; try again")
        await self._leases.of(session_id).ensure_good()
        self._held.doubtful.pop(session_id, None)
        try:
            claim = read_claim(await self._redis.part_of(session_id).run_script(
                "claim", self._redis.replica, session_id, 1 + int(secrets.token_hex(TOKEN_STEP_BYTES), 16)))
            if claim.outcome == "yours":
                await self._take(session_id, claim.token, claim.head)
        except RedisUnreachable:
            self._held.doubtful[session_id] = None  # Redis may have carried the claim out all the same
            raise
        if claim.outcome == "lapsed":
            self._held.doubtful[session_id] = None
            self._leases.of(session_id).mark_doubtful()
            raise OwnerUnknown("this server has just come back; try again")
        return claim.owner if claim.outcome == "held" else None

    async def _take(self, session_id: str, token: str, head: int) -> None:
        """Load the session that was claimed; its open turn is closed, or waits on for people."""
        self._held.drop_copy(session_id)
        self._log.hold(session_id, token, head)
        self._claimed_at.pop(session_id, None)
        self._claimed_at[session_id] = asyncio.get_running_loop().time()
        if len(self._claimed_at) > MAX_CLAIM_TIMES:
            del self._claimed_at[next(iter(self._claimed_at))]
        try:
            await self._leases.of(session_id).ensure_good()
            await self._cache.load(session_id)
        except BaseException:
            self._log.let_go(session_id)
            self._held.drop_copy(session_id)
            raise

    def was_claimed_within(self, session_id: str, seconds: float) -> bool:
        claimed_at = self._claimed_at.get(session_id)
        return claimed_at is not None and asyncio.get_running_loop().time() - claimed_at < seconds

    async def take_over(self, parts: Sequence[RedisClient]) -> int:
        """Claim sessions of these parts with an open turn whose server is dead; return how many."""
        return sum(await asyncio.gather(*map(self._take_over, parts)))

    async def _take_over(self, part: RedisClient) -> int:
        taken = 0
        while found := await self._orphans(part):
            before = taken
            for session_id in found:
                taken += await self._try_to_claim(session_id)
            if taken == before:
                break
        return taken

    async def _orphans(self, part: RedisClient) -> list[str]:
        """Some of the sessions with an open turn whose server is dead."""
        return read_session_ids(await part.run_script("orphans", self._redis.replica, ORPHANS_PER_CLAIM))

    async def claim_doubtful(self) -> None:
        """Claim the sessions of which it is not known whether this server writes them."""
        for session_id in tuple(self._held.doubtful):
            if self._leases.of(session_id).is_good:
                await self._try_to_claim(session_id)

    async def _try_to_claim(self, session_id: str) -> bool:
        await self._leases.of(session_id).renew_if_due()
        try:
            return await self.owner_of(session_id) is None
        except RedisUnreachable:
            raise
        except GatewayError as error:
            log.warning("session_takeover_failed", session=session_id, error=error.message)
            return False
