"""The nodes of a Redis Cluster: which of them has a slot, and the connections to them that all partitions share."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from gateway.supervision import take_error

from .address import Place, RedisAddress
from .connection import Command, CommandRefused, RedisConnection, RedisUnreachable, unreachable_error
from .lines import load_commands
from .replies import Reply
from .sentinel import close_connection, open_connection

log = structlog.get_logger("dragoman.redis")

ASKED_AT_ONCE = 5
"""How many nodes are asked for the slots at once; the latest configuration among their answers is believed."""


@dataclass(frozen=True)
class Primary:
    """The node that has a slot; `id` is what the nodes call each other."""

    id: str
    place: Place


@dataclass(frozen=True)
class SlotMap:
    """The primaries by the slots that they have, as one node knows them; a later configuration has a greater epoch."""

    epoch: tuple[bool, int]
    ranges: tuple[tuple[int, int, Primary], ...]
    places: tuple[Place, ...]
    """All nodes, replicas too."""

    def primary_of(self, slot: int) -> Primary | None:
        return next((primary for first, last, primary in self.ranges if first <= slot <= last), None)

    @property
    def primaries(self) -> dict[str, Primary]:
        return {primary.id: primary for _, _, primary in self.ranges}


def read_slots(info: bytes, slots: Sequence[Sequence[Reply]], asked: Place) -> SlotMap:
    """From the replies to CLUSTER INFO and CLUSTER SLOTS; a node that does not name its host is where it was asked."""
    fields = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    epoch = fields.get("cluster_state") == "ok", int(fields.get("cluster_current_epoch", 0))

    def place(node: Sequence[Reply]) -> Place:
        host = node[0].decode() if node[0] else ""
        return (host if host not in ("", "?") else asked[0]), int(node[1])

    ranges = tuple(
        (int(first), int(last), Primary(nodes[0][2].decode(), place(nodes[0]))) for first, last, *nodes in slots)
    return SlotMap(epoch, ranges, tuple(dict.fromkeys(place(node) for _, _, *nodes in slots for node in nodes)))


class SharedLine:
    """A connection that all partitions of a node share: what they ask at once leaves in one write, with one WAIT."""

    def __init__(self, connection: RedisConnection, wait: int) -> None:
        self.connection = connection
        self._wait = wait
        self._asked: list[tuple[Sequence[Command], asyncio.Future[list[Reply]]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def ask_synced(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies, when so many replicas as are wanted have what is there; the last command must be a write."""
        done: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        self._asked.append((commands, done))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="redis group")
        return await done

    async def _send(self) -> None:
        """Send one group after the other; what is asked while a group is on its way is the next group."""
        await asyncio.sleep(0)  # others ask in the same moment
        while self._asked:
            group, self._asked = self._asked, []
            try:
                replies = await self._exchange([command for commands, _ in group for command in commands])
            except RedisUnreachable as error:
                for _, done in group:
                    if not done.done():
                        done.set_exception(error)
                        done.exception()
                continue
            at = 0
            for commands, done in group:
                if not done.done():
                    done.set_result(replies[at:at + len(commands)])
                at += len(commands)
        self._sending = None

    async def _exchange(self, commands: list[Command]) -> list[Reply]:
        if not self._wait:
            return await self.connection.ask_all(commands)
        *replies, number = await self.connection.ask_all([*commands, self.connection.wait_command])
        if isinstance(number, CommandRefused):
            raise unreachable_error("the cluster", str(number))
        self.connection.check_replicas(number)
        return replies

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
        await self.connection.close()


class ClusterNode:
    """A node: one connection that writes and one that reads, so that neither delays the other."""

    def __init__(self, address: RedisAddress, place: Place, seconds: float) -> None:
        async def dial(seconds: float) -> AbstractConnection:
            return await open_connection(address.connection(seconds, place))

        async def load_scripts(line: RedisConnection) -> None:
            await line.greeting(*load_commands(sharded=True))

        self.place, self.dial = place, dial
        self.writing, self.reading = (
            SharedLine(RedisConnection(address, seconds, load_scripts, dial), address.wait) for _ in range(2))

    def hang_up(self, why: str) -> None:
        for line in (self.writing, self.reading):
            line.connection.hang_up(why)

    async def close(self) -> None:
        await self.writing.close()
        await self.reading.close()


class ClusterNodes:
    """Knows which node has which slot, and has the connections to them; listeners hear of slots that moved."""

    def __init__(self, address: RedisAddress, seconds: float) -> None:
        self.address, self.seconds = address, seconds
        self.slots: SlotMap | None = None
        self._nodes: dict[Place, ClusterNode] = {}
        self._listeners: list[Callable[[SlotMap, SlotMap], None]] = []
        self._refreshing: asyncio.Task[None] | None = None

    def attach(self, listener: Callable[[SlotMap, SlotMap], None]) -> None:
        """Call it with the slots of before and of now, whenever a slot has another primary."""
        self._listeners.append(listener)

    async def primary_of(self, slot: int) -> ClusterNode:
        """The node that has the slot; raises `RedisUnreachable` if no node is known to have it."""
        if self.slots is None:
            await self.refresh()
        assert self.slots is not None
        primary = self.slots.primary_of(slot)
        if primary is None:
            self.refresh_soon()
            raise unreachable_error(self.address.shown, f"no node has slot {slot}")
        return self.node(primary.place)

    def node(self, place: Place) -> ClusterNode:
        if place not in self._nodes:
            self._nodes[place] = ClusterNode(self.address, place, self.seconds)
        return self._nodes[place]

    # -- the slots ------------------------------------------------------------------------------------------------

    def refresh_soon(self) -> None:
        """Ask the nodes for the slots, unless that is being done."""
        self._refreshed()

    def _refreshed(self) -> asyncio.Task[None]:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(), name="redis cluster slots")
            self._refreshing.add_done_callback(take_error)
        return self._refreshing

    async def refresh(self) -> None:
        """Ask the nodes for the slots; raises `RedisUnreachable` if no node answers."""
        await asyncio.shield(self._refreshed())

    async def _refresh(self) -> None:
        known = () if self.slots is None else self.slots.places
        places = list(dict.fromkeys((*known, *self.address.nodes)))
        failure: Exception = TimeoutError()
        while places:
            asked, places = places[:ASKED_AT_ONCE], places[ASKED_AT_ONCE:]
            answers = await asyncio.gather(*map(self._ask, asked), return_exceptions=True)
            if found := [answer for answer in answers if isinstance(answer, SlotMap)]:
                self._take(max(found, key=lambda one: one.epoch))
                return
            failure = next(one for one in answers if isinstance(one, Exception))
        raise unreachable_error(self.address.shown, failure)

    async def _ask(self, place: Place) -> SlotMap:
        try:
            async with asyncio.timeout(self.seconds / 2):
                connection = await open_connection(self.address.connection(self.seconds, place))
                try:
                    replies = []
                    for word in ("INFO", "SLOTS"):
                        await connection.send_command("CLUSTER", word)
                        replies.append(await connection.read_response())
                finally:
                    await close_connection(connection)
        except (RedisError, OSError, TimeoutError) as error:
            raise unreachable_error(self.address.shown, error) from None
        return read_slots(replies[0], replies[1], place)

    def _take(self, slots: SlotMap) -> None:
        before, self.slots = self.slots, slots
        if before is None or before.ranges == slots.ranges:
            return
        now = {primary.place for primary in slots.primaries.values()}
        for place in [place for place in self._nodes if place not in now]:
            self._nodes[place].hang_up("it is not a primary any more")
        for listener in self._listeners:
            listener(before, slots)

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing], timeout=1)
        for node in self._nodes.values():
            await node.close()
