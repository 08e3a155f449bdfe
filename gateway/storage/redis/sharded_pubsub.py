"""Receives what is published in a Redis Cluster: over a connection to each node, following the slots of channels."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import structlog

from gateway.errors import GatewayError

from .address import Place
from .nodes import ClusterNodes, SlotMap
from .pubsub import PubSubReceiver, RedisPubSub

log = structlog.get_logger("dragoman.redis")


class ShardedPubSub:
    """Subscribes each channel at the node that has its slot; when the slot moves, the subscription moves after it."""

    def __init__(
        self, nodes: ClusterNodes, slot_of_channel: Callable[[str], int], clock: Callable[[], float],
    ) -> None:
        self._nodes, self._slot_of, self._clock = nodes, slot_of_channel, clock
        self._receiver: PubSubReceiver | None = None
        self._lines: dict[Place, RedisPubSub] = {}
        self._channels: dict[str, Place] = {}
        self._moves: set[asyncio.Task[None]] = set()
        nodes.attach(self._slots_moved)

    def is_subscribed(self, channel: str) -> bool:
        return channel in self._channels

    @property
    def channels(self) -> Iterable[str]:
        return tuple(self._channels)

    async def start(self, receiver: PubSubReceiver, *channels: str) -> None:
        """Listen to these channels from now on; those of nodes that cannot be reached follow when they can be."""
        self._receiver = receiver
        await asyncio.gather(*map(self.listen, channels))

    async def listen(self, channel: str) -> None:
        """Return when all that is published there from now on will be received; raises `RedisUnreachable`."""
        if channel not in self._channels:
            self._channels[channel] = (await self._nodes.primary_of(self._slot_of(channel))).place
        await (await self._line(self._channels[channel])).listen(channel)

    async def _line(self, place: Place, *, catches_up: bool = False) -> RedisPubSub:
        if place not in self._lines:
            assert self._receiver is not None, "it was started"
            line = self._lines[place] = RedisPubSub(
                self._nodes.address, self._nodes.seconds, self._clock, self._nodes.node(place).dial, sharded=True,
                disconnected=self._nodes.refresh_soon, catches_up=catches_up)
            await line.start(self._receiver)
        return self._lines[place]

    def ignore(self, channel: str) -> None:
        place = self._channels.pop(channel, None)
        if place is not None and place in self._lines:
            self._lines[place].ignore(channel)

    def poke(self) -> None:
        for line in self._lines.values():
            line.poke()

    # -- slots that move ------------------------------------------------------------------------------------------

    def _slots_moved(self, before: SlotMap, after: SlotMap) -> None:
        moved = []
        for channel, place in self._channels.items():
            primary = after.primary_of(self._slot_of(channel))
            if primary is not None and primary.place != place:
                moved.append(channel)
                self._channels[channel] = primary.place
                if place in self._lines:
                    self._lines[place].ignore(channel)
        if moved:
            task = asyncio.create_task(self._listen_anew(moved), name="moved channels")
            self._moves.add(task)
            task.add_done_callback(self._moves.discard)

    async def _listen_anew(self, channels: Sequence[str]) -> None:
        """Subscribe where the slots are now; what was published meanwhile is missed."""
        for place in {self._channels[one] for one in channels if one in self._channels}:
            await self._line(place, catches_up=True)
        wanted = [self.listen(one) for one in channels if one in self._channels]
        for outcome in await asyncio.gather(*wanted, return_exceptions=True):
            if isinstance(outcome, GatewayError):
                log.warning("pubsub_disconnected", server=self._nodes.address.shown, error=outcome.message)
        for place in self._lines.keys() - set(self._channels.values()):
            await self._lines.pop(place).close()
        assert self._receiver is not None, "it was started"
        self._receiver.missed()

    async def close(self) -> None:
        for task in tuple(self._moves):
            task.cancel()
        for line in self._lines.values():
            await line.close()
        self._lines, self._channels = {}, {}
