"""Sessions that one of several servers holds: claimed, kept while its lease is good, lost, handed over, taken over."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from gateway.engine import Hub, LocalSessionService, Runtime
from gateway.errors import GatewayError, Overloaded
from gateway.storage.log.redis import RedisLog
from gateway.storage.redis import RedisUnreachable

from .membership import Membership

log = structlog.get_logger("dragoman.cluster")

ORPHANS_PER_CLAIM = 32
"""How many sessions of a server that has died are taken over at a time; the others share the rest."""
MAX_CLAIM_TIMES = 10_000
"""Of how many sessions is remembered when they were taken."""
PAGE = 500
"""How many tokens are looked at in one go."""


class OwnerUnknown(Overloaded):
    """Who writes the session cannot be told just now."""


class HeldSessions(LocalSessionService):
    """Whoever writes a session holds it: by its token, which Redis judges, and by a lease, for which others wait."""

    def __init__(self, runtime: Runtime, hub: Hub, kept: RedisLog) -> None:
        super().__init__(runtime, hub)
        self._log, self._redis = kept, kept.redis
        self._membership = Membership(self._redis, self._verify, self._after_beat, self._no_beat)
        self._claiming: dict[str, asyncio.Future[str | None]] = {}
        self._errands: set[asyncio.Task[Any]] = set()
        self._taken_at: dict[str, float] = {}
        """When sessions of other servers became ours, in the loop's time."""
        self._doubtful: set[str] = set()
        """Sessions that may be ours though we do not hold them: nobody else would ever close their turns."""
        kept.on_lost = self._dropped

    @property
    def leads(self) -> bool:
        return self._membership.is_leader

    async def recover(self) -> int:
        """Become one of the servers, and take up what those left behind that have died."""
        await self._membership.beat()
        taken = await self._take_over()
        self._membership.start()
        return taken

    async def rest(self) -> None:
        await self._log.flush()
        await self._membership.stop()
        for errand in self._errands:
            errand.cancel()

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        self._runtime.is_draining = True
        for session_id in self._log.held:
            await self._hand_over(session_id)
        await super().drain(seconds, hurry)

    # -- claiming -------------------------------------------------------------------------------------------------

    async def _owner_of(self, session_id: str) -> str | None:
        """Who writes the session; None if it is us, from now on at the latest."""
        if self._log.holds(session_id):
            await self._membership.sure()
            if self._log.holds(session_id):
                return None
        claiming = self._claiming.get(session_id)
        if claiming is None:
            claiming = self._claiming[session_id] = asyncio.ensure_future(self._claim(session_id))
            claiming.add_done_callback(lambda done: self._claiming.pop(session_id, None))
        return await asyncio.shield(claiming)

    async def _claim(self, session_id: str) -> str | None:
        if self._runtime.is_draining:
            raise OwnerUnknown("the server is about to stop")
        if not self._log.is_settled(session_id):
            raise OwnerUnknown("the session has just moved to another server; try again")
        await self._membership.sure()
        self._doubtful.discard(session_id)
        try:
            answer = await self._redis.run_script("claim", self._redis.replica, session_id)
            if answer[0] == b"yours":
                await self._take(session_id, answer[1].decode(), int(answer[2]))
        except RedisUnreachable:
            self._doubtful.add(session_id)  # it may have been claimed all the same
            raise
        if answer[0] == b"lapsed":
            self._doubtful.add(session_id)
            self._membership.doubt()
            raise OwnerUnknown("this server has just come back; try again")
        return str(answer[1].decode()) if answer[0] == b"held" else None

    async def _take(self, session_id: str, token: str, head: int) -> None:
        """Ours from now on: fetched anew, its open turn closed or waited on with."""
        self._drop_copy(session_id)
        self._log.hold(session_id, token, head)
        self._taken_at.pop(session_id, None)
        self._taken_at[session_id] = asyncio.get_running_loop().time()
        if len(self._taken_at) > MAX_CLAIM_TIMES:
            del self._taken_at[next(iter(self._taken_at))]
        try:
            await self._loaded(session_id)
        except BaseException:
            self._log.let_go(session_id)
            self._drop_copy(session_id)
            raise

    async def _take_over(self) -> int:
        """Sessions with an open turn whose server has died; those that many servers find are claimed by one."""
        taken = 0
        while found := await self._redis.run_script("orphans", self._redis.replica, ORPHANS_PER_CLAIM):
            before = taken
            for session_id in map(bytes.decode, found):
                taken += await self._is_taken(session_id)
            if taken == before:
                break
        return taken

    async def _is_taken(self, session_id: str) -> bool:
        await self._membership.keep_on()
        try:
            return await self._owner_of(session_id) is None
        except RedisUnreachable:
            raise
        except GatewayError as error:
            log.warning("session_takeover_failed", session=session_id, error=error.message)
            return False

    # -- letting go -----------------------------------------------------------------------------------------------

    def _let_go(self, session_id: str) -> None:
        """Nobody has asked for it for long: whoever is asked next may claim it."""
        if (token := self._log.let_go(session_id)) is not None:
            self._spawn(self._redis.run_script("release", self._redis.replica, session_id, token))

    async def _hand_over(self, session_id: str) -> None:
        """Let a session that rests be claimed by others; its watchers read on."""
        session = self._sessions.get(session_id)
        if session is None or session.run is not None or not self._log.is_settled(session_id):
            return
        token = self._log.let_go(session_id)
        if token is not None:
            self._drop_copy(session_id)
            self._attend_soon(session_id)
            await self._redis.run_script("release", self._redis.replica, session_id, token)

    def _lose(self, session_id: str) -> None:
        """Another server has it: whatever we did for it ends without a word, and its watchers read on."""
        self._log.let_go(session_id)
        session = self._sessions.pop(session_id, None)
        if session is not None and session.run is not None:
            session.run.abandon()
        self._runtime.replacement_backends.pop(session_id, None)
        self._attend_soon(session_id)

    def _dropped(self, session_id: str) -> None:
        """The log did not take what we wrote: another server has the session, or the log is not what it was."""
        self._lose(session_id)
        self._doubtful.add(session_id)

    def _drop_copy(self, session_id: str) -> None:
        if not self._log.holds(session_id):
            self._sessions.pop(session_id, None)

    async def _verify(self) -> None:
        """Our lease may have run out: what was taken from us meanwhile is not ours any more."""
        held = self._log.held
        for start in range(0, len(held), PAGE):
            page = held[start:start + PAGE]
            tokens = await self._redis.read_all([("HGET", self._redis.key("s", one), "token") for one in page])
            for session_id, token in zip(page, tokens, strict=True):
                if token is not None and self._log.is_overtaken(session_id, int(token)):
                    self._lose(session_id)

    # -- from beat to beat ----------------------------------------------------------------------------------------

    async def _after_beat(self) -> None:
        self._log.session_count = self._membership.sessions
        await self._log.recount()
        if self._runtime.is_draining:
            return
        if self._membership.is_steady and (taken := await self._take_over()):
            log.warning("sessions_taken_over", sessions=taken)
        for session_id in tuple(self._doubtful):
            await self._is_taken(session_id)

    def _no_beat(self) -> None:
        """Redis does not answer."""

    def _attend_soon(self, session_id: str) -> None:
        """Somebody may watch the session, and we do not write it any more."""

    def _spawn(self, errand: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
