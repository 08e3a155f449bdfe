"""Messages between servers through Redis: calls, each carried out once, and what this server receives."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gateway.storage import UNSEALED, Seal
from gateway.storage.redis import RedisUnreachable, SharedRedis
from gateway.trace_context import TRACEPARENT, within_trace

from . import messages
from .leases import HeldSessions
from .membership import Leases
from .messages import AnyCall, OwnerChanged, RpcReply, RpcRequest, encode_message, seal_message, unseal_message
from .session_copies import SessionCopies
from .stream_relay import SessionChannels

log = structlog.get_logger("dragoman.cluster")

MAX_KNOWN_CALLS, MAX_CONCURRENT_CALLS = 10_000, 1000
"""How many calls are remembered in case they come again, and how many are carried out at once."""

Serve = Callable[[RpcRequest, bool], Awaitable[RpcReply | None]]
"""(request, whether it came before) → the reply; None if it is not known yet: the sender asks again."""


class RpcChannel:
    """The calls that this server waits for, and those that other servers wait for."""

    def __init__(self, redis: SharedRedis, serve: Serve, seal: Seal = UNSEALED) -> None:
        self._redis = redis
        self._serve, self._seal = serve, seal
        self._waiting: dict[str, asyncio.Future[RpcReply]] = {}
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, RpcReply | None] = {}
        """The requests that have come, with their replies; replies with a receipt are in the log instead."""

    async def ask(self, replica: str, request: str, call: AnyCall, seconds: float) -> RpcReply | None:
        """The reply of that server; None if it is not there, or does not reply in time."""
        waiting = self._waiting.setdefault(request, asyncio.get_running_loop().create_future())
        message = RpcRequest(
            request=request, sender=self._redis.replica, call=call, traceparent=TRACEPARENT.get())
        try:
            receivers = await self._redis.part_of(call.session_id).publish(
                f"to:{replica}", encode_message(seal_message(message, self._seal)))
            async with asyncio.timeout(seconds if receivers else seconds / 10):
                return await asyncio.shield(waiting)
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(request, None)

    def receive_reply(self, message: RpcReply) -> None:
        waiting = self._waiting.get(message.request)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    def receive_request(self, message: RpcRequest) -> None:
        """Carry the call out, unless that is done already or being done."""
        if message.request in self._serving or len(self._serving) >= MAX_CONCURRENT_CALLS:
            return  # the reply comes when it is ready; a sender without a reply asks again
        task = asyncio.create_task(self._carry_out(message), name=f"call {message.request}")
        self._serving[message.request] = task
        task.add_done_callback(lambda done: self._serving.pop(message.request, None))

    async def _carry_out(self, message: RpcRequest) -> None:
        answer = self._known.get(message.request)
        if answer is None:
            with within_trace(message.traceparent):
                answer = await self._serve(message, message.request in self._known)
            self._keep(message.request, answer)
        if answer is None:
            return
        try:
            await self._redis.part_of(message.call.session_id).publish(
                f"to:{message.sender}", encode_message(seal_message(answer, self._seal)))
        except RedisUnreachable as error:
            log.warning("rpc_reply_failed", session=message.call.session_id, error=error.message)

    def _keep(self, request: str, answer: RpcReply | None) -> None:
        if answer is not None and (answer.elsewhere or answer.refused is not None):
            return  # nothing was done, and the call may be tried again
        self._known[request] = answer if answer is not None and answer.receipt is None else None
        if len(self._known) > MAX_KNOWN_CALLS:
            del self._known[next(iter(self._known))]

    async def close(self) -> None:
        for task in list(self._serving.values()):
            task.cancel()
        await asyncio.gather(*self._serving.values(), return_exceptions=True)


class Inbox:
    """Passes each message on to the part of the cluster that it is for."""

    def __init__(
        self, redis: SharedRedis, seal: Seal, rpc: RpcChannel, channels: SessionChannels, held: HeldSessions,
        leases: Leases, copies: SessionCopies,
    ) -> None:
        self.addresses = [part.key("to", redis.replica) for part in redis.parts]
        """The channels on which other servers write to this one, by the part that the session is in."""
        self._own = frozenset(self.addresses)
        self._seal = seal
        self._rpc = rpc
        self._channels = channels
        self._held = held
        self._leases = leases
        self._copies = copies

    def received(self, channel: str, message: bytes) -> None:
        if channel in self._own:
            self._read(message)
        else:
            session_id = self._channels.session_of(channel)
            if session_id is not None:
                self._copies.received(session_id, message)

    def _read(self, message: bytes) -> None:
        match unseal_message(messages.decode_message(message), self._seal):
            case RpcRequest() as request:
                # after a sleep, the request may be old, and its sender has asked another server
                if not self._leases.of(request.call.session_id).has_slept:
                    self._rpc.receive_request(request)
            case RpcReply() as reply:
                self._rpc.receive_reply(reply)
            case OwnerChanged(session_id=session_id, token=token):
                self._held.lose_if_overtaken(session_id, token)

    def missed(self) -> None:
        """The connection was broken: messages and records may be lost."""
        self._leases.mark_doubtful()
        self._copies.read_all_again()
