"""One connection that receives what is published on channels of Redis; it reconnects by itself."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Protocol

import structlog
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from .address import RedisAddress
from .connection import pack, unreachable_error
from .sentinel import Dial, make_dial

log = structlog.get_logger("dragoman.redis")

RECONNECT_SECONDS = 0.2


class PubSubReceiver(Protocol):
    """Receives what is published."""

    def received(self, channel: str, message: bytes) -> None: ...
    def missed(self) -> None:
        """The connection was broken and is back: messages may have been lost meanwhile."""


class PubSub(Protocol):
    """Receives what is published on its channels: over one connection, or over one to each node of a cluster."""

    def is_subscribed(self, channel: str) -> bool: ...
    @property
    def channels(self) -> Iterable[str]: ...
    async def start(self, receiver: PubSubReceiver, *channels: str) -> None:
        """Listen to these channels from now on; raises `RedisUnreachable`."""
    async def listen(self, channel: str) -> None:
        """Return when all that is published there from now on will be received; raises `RedisUnreachable`."""
    def ignore(self, channel: str) -> None:
        """Listen to the channel no more."""
    def poke(self) -> None:
        """Ask whether the connections live."""
    async def close(self) -> None: ...


class RedisPubSub:
    """Receives what is published on its channels, and reconnects when the connection breaks.

    Channels of a cluster are sharded: a message goes to the node that has the slot of its channel, and to no other.
    `disconnected` is called when the connection breaks, and when a channel is not on that node any more.
    """

    def __init__(
        self, address: RedisAddress, seconds: float, clock: Callable[[], float] = time.monotonic,
        dial: Dial | None = None, *, sharded: bool = False, disconnected: Callable[[], None] = lambda: None,
        catches_up: bool = False,
    ) -> None:
        self._address = address
        self._dial = dial or make_dial(address)
        self._clock = clock
        self._seconds = seconds
        self._channels: dict[str, asyncio.Future[None]] = {}
        self._connection: AbstractConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._catching_up: set[str] = set()
        self._is_first = not catches_up
        self._shard, self._disconnected = "S" if sharded else "", disconnected
        self._received_at = self._clock()

    def is_subscribed(self, channel: str) -> bool:
        return channel in self._channels

    @property
    def channels(self) -> Iterable[str]:
        return tuple(self._channels)

    async def start(self, receiver: PubSubReceiver, *channels: str) -> None:
        """Listen to these channels from now on; raises `RedisUnreachable`."""
        self._task = asyncio.create_task(self._run(receiver), name="redis pubsub")
        for channel in channels:
            await self.listen(channel)

    async def listen(self, channel: str) -> None:
        """Return when all that is published there from now on will be received; raises `RedisUnreachable`."""
        known = self._channels.get(channel)
        if known is None:
            known = self._channels[channel] = asyncio.get_running_loop().create_future()
            self._subscribe(channel)
        try:
            async with asyncio.timeout(self._seconds):
                await asyncio.shield(known)
        except TimeoutError:
            raise unreachable_error(self._address.shown, "it does not answer") from None

    def ignore(self, channel: str) -> None:
        if self._channels.pop(channel, None) is not None:
            self._send(f"{self._shard}UNSUBSCRIBE", channel)

    def poke(self) -> None:
        """Ask whether the connection lives; a connection that was silent for too long is replaced."""
        if self._clock() - self._received_at > 2 * self._seconds:
            self._drop()
        else:
            self._send("PING")

    def _subscribe(self, *channels: str) -> None:
        if not self._shard:
            self._send("SUBSCRIBE", *channels)
            return
        for channel in channels:  # those of one command must be in one slot
            self._send("SSUBSCRIBE", channel)

    def _send(self, *words: str) -> None:
        connection = self._connection
        if connection is not None and connection._writer is not None:
            connection._writer.write(pack(words))

    # -- the connection -------------------------------------------------------------------------------------------

    async def _run(self, receiver: PubSubReceiver) -> None:
        while True:
            try:
                await self._listen(receiver)
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("pubsub_disconnected", server=self._address.shown, error=str(error) or "no answer")
            self._drop()
            self._disconnected()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self, receiver: PubSubReceiver) -> None:
        async with asyncio.timeout(self._seconds):
            connection = await self._dial(self._seconds)
        self._connection, self._received_at = connection, self._clock()
        waiting = {channel: known for channel, known in self._channels.items() if not known.done()}
        fresh = asyncio.get_running_loop().create_future
        self._channels = {channel: waiting.get(channel) or fresh() for channel in self._channels}
        self._catching_up, self._is_first = set() if self._is_first else set(self._channels), False
        if self._channels:
            self._subscribe(*self._channels)
        while True:
            self._take(await connection.read_response(disconnect_on_error=False), receiver)

    def _take(self, message: Any, receiver: PubSubReceiver) -> None:
        self._received_at = self._clock()
        kind, channel = message[0], message[1].decode()
        if kind in (b"message", b"smessage"):
            receiver.received(channel, message[2])
        elif kind in (b"subscribe", b"ssubscribe"):
            self._subscribed(channel, receiver)
        elif kind == b"sunsubscribe" and channel in self._channels:
            self._disconnected()

    def _subscribed(self, channel: str, receiver: PubSubReceiver) -> None:
        if (known := self._channels.get(channel)) is not None and not known.done():
            known.set_result(None)
        if channel in self._catching_up:
            self._catching_up.discard(channel)
            if not self._catching_up:
                receiver.missed()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection._writer is not None:
            connection._writer.transport.abort()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._drop()
        for known in self._channels.values():
            known.cancel()
        self._channels = {}
