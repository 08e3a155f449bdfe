"""Calls to other servers, through Redis: sent until answered, carried out once however often they arrive."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gateway.storage import UNSEALED, Seal
from gateway.storage.redis import RedisClient, RedisUnreachable

from .messages import AnyCall, RpcReply, RpcRequest, encode_message, seal_message

log = structlog.get_logger("dragoman.cluster")

MAX_KNOWN_CALLS, MAX_CONCURRENT_CALLS = 10_000, 1000
"""How many calls are remembered, lest they come again, and how many are carried out at once."""

Serve = Callable[[RpcRequest, bool], Awaitable[RpcReply | None]]
"""(a call, whether it has come before) → what becomes of it; None if that is not known yet, and it is to come again."""


class RpcChannel:
    """The calls that we wait for, and those that others wait for."""

    def __init__(self, redis: RedisClient, serve: Serve, seal: Seal = UNSEALED) -> None:
        self._redis = redis
        self._serve, self._seal = serve, seal
        self._waiting: dict[str, asyncio.Future[RpcReply]] = {}
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, RpcReply | None] = {}
        """Calls that have come; the answer too where it is small. What has a receipt is in the log."""

    async def ask(self, replica: str, request: str, call: AnyCall, seconds: float) -> RpcReply | None:
        """The answer of that server; None if it is not there, or does not answer in time."""
        waiting = self._waiting.setdefault(request, asyncio.get_running_loop().create_future())
        letter = RpcRequest(request=request, sender=self._redis.replica, call=call)
        try:
            heard = await self._redis.publish(f"to:{replica}", encode_message(seal_message(letter, self._seal)))
            async with asyncio.timeout(seconds if heard else seconds / 10):
                return await asyncio.shield(waiting)
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(request, None)

    def replied(self, letter: RpcReply) -> None:
        waiting = self._waiting.get(letter.request)
        if waiting is not None and not waiting.done():
            waiting.set_result(letter)

    def asked(self, letter: RpcRequest) -> None:
        """Carry it out, unless that is done already or being done."""
        if letter.request in self._serving or len(self._serving) >= MAX_CONCURRENT_CALLS:
            return  # the answer comes when it is ready; who gets none asks again
        task = asyncio.create_task(self._carry_out(letter), name=f"call {letter.request}")
        self._serving[letter.request] = task
        task.add_done_callback(lambda done: self._serving.pop(letter.request, None))

    async def _carry_out(self, letter: RpcRequest) -> None:
        answer = self._known.get(letter.request)
        if answer is None:
            answer = await self._serve(letter, letter.request in self._known)
            self._keep(letter.request, answer)
        if answer is None:
            return
        try:
            await self._redis.publish(f"to:{letter.sender}", encode_message(seal_message(answer, self._seal)))
        except RedisUnreachable as error:
            log.warning("rpc_reply_failed", session=letter.call.session_id, error=error.message)

    def _keep(self, request: str, answer: RpcReply | None) -> None:
        if answer is not None and (answer.elsewhere or answer.refused is not None):
            return  # nothing was done, and it may be tried again
        self._known[request] = answer if answer is not None and answer.receipt is None else None
        if len(self._known) > MAX_KNOWN_CALLS:
            del self._known[next(iter(self._known))]

    async def close(self) -> None:
        for task in list(self._serving.values()):
            task.cancel()
        await asyncio.gather(*self._serving.values(), return_exceptions=True)
