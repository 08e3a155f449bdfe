"""The data that several gateways share, divided over a Redis Cluster: each partition is in one slot, with a client."""

import asyncio
import re
import secrets
import time
from binascii import crc_hqx
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache, partial
from itertools import count
from zlib import crc32

import structlog

from ..sqlite import StorageUnusable
from .address import Place, RedisAddress
from .client import DEFAULT_LEASE_SECONDS, ClusterShare, RedisClient
from .connection import Command, CommandRefused, RedisUnreachable, unreachable_error
from .durability import check_durability
from .lines import glob_escaped, scan_keys
from .nodes import ClusterNode, ClusterNodes, SlotMap
from .partition_line import PartitionLine
from .replies import Reply
from .sharded_pubsub import ShardedPubSub

log = structlog.get_logger("dragoman.redis")

SLOTS = 16384
NUMBER_KEY = "partitions"
"""Where each partition stores how many there are."""


def slot_of(tag: str) -> int:
    """The slot of the keys with this word in braces."""
    return crc_hqx(tag.encode(), 0) % SLOTS


def slot_of_key(key: str) -> int:
    """The slot of a key, or of a channel, with a word in braces."""
    return slot_of(key.partition("{")[2].partition("}")[0])


@cache
def tags(number: int) -> tuple[str, ...]:
    """A word for each partition, so that their slots are spread evenly: nodes have ranges of slots."""
    return tuple(
        next(tag for more in count() if slot_of(tag := f"{part}.{more}") * number // SLOTS == part)
        for part in range(number))


class NodeReader:
    """Reads from one node, whatever slots it has."""

    def __init__(self, node: ClusterNode) -> None:
        self._line = node.reading.connection

    async def read_all(self, commands: Sequence[Command]) -> list[Reply]:
        replies = await self._line.ask_all(commands)
        for reply in replies:
            if isinstance(reply, CommandRefused):
                raise unreachable_error("the cluster", str(reply))
        return replies


class RedisPartitions:
    """The clients of all partitions, and their common connections: to each node one that writes and one that reads.

    A session belongs to a partition by its id, and so do its records, its lease and its places in lists: what is done
    to it is one step in one slot, as on a server alone. If a node cannot be reached, only its partitions cannot.
    """

    def __init__(
        self, address: RedisAddress, *, lease: float = DEFAULT_LEASE_SECONDS, fsync: bool = False,
        clock: Callable[[], float] = time.monotonic, name: str = "",
    ) -> None:
        self.address, self.name, self.clock, self.lease = address, name, clock, lease
        self.replica = secrets.token_hex(6)
        self.seconds = max(0.25, min(5.0, lease / 2))
        self._fsync = fsync
        self.nodes = ClusterNodes(address, self.seconds)
        self.slots = [slot_of(tag) for tag in tags(address.partitions)]
        self.prefixes = [f"{address.prefix}{{{tag}}}:" for tag in tags(address.partitions)]
        failing = set[int]()
        self.parts: Sequence[RedisClient] = [
            RedisClient(address, lease=lease, fsync=fsync, clock=clock, name=name, share=ClusterShare(
                number, address.partitions, prefix, self.replica, PartitionLine(self.nodes, slot, prefix, writes=True),
                PartitionLine(self.nodes, slot, prefix, writes=False), partial(self._covers, number), failing))
            for number, (slot, prefix) in enumerate(zip(self.slots, self.prefixes, strict=True))]
        self.failovers = 0
        self.nodes.attach(self._slots_moved)

    def number_of(self, word: str) -> int:
        """The partition of a session, a user or another word."""
        return crc32(word.encode(errors="surrogatepass")) % len(self.parts)

    def part_of(self, word: str) -> RedisClient:
        return self.parts[self.number_of(word)]

    def _covers(self, number: int, word: str) -> bool:
        return self.number_of(word) == number

    def pubsub(self) -> ShardedPubSub:
        """Receives what is published; it is not connected yet."""
        return ShardedPubSub(self.nodes, slot_of_key, self.clock)

    async def open(self) -> None:
        """Find the nodes, and check that the cluster can be used; raises `StorageUnusable`."""
        try:
            await self.nodes.refresh()
            assert self.nodes.slots is not None
            for primary in self.nodes.slots.primaries.values():
                await check_durability(self.nodes.node(primary.place).writing.connection, self.address, self._fsync)
            await self._agree_on_number()
            await asyncio.gather(*(part.begin() for part in self.parts))
        except (RedisUnreachable, CommandRefused) as error:
            await self.close()
            hint = getattr(error, "hint", RedisUnreachable.hint)
            raise StorageUnusable(f"log: {error}; {hint}") from None
        except StorageUnusable:
            await self.close()
            raise

    async def _agree_on_number(self) -> None:
        """The first server stores how many partitions there are; all others must have the same number."""
        key, number = f"{self.address.prefix}{{{NUMBER_KEY}}}", len(self.parts)
        line = PartitionLine(self.nodes, slot_of(NUMBER_KEY), f"{key}:", writes=True)
        found = await line.ask("GET", key)
        if found is None:
            refused, found = await line.ask_synced([("SET", key, number, "NX"), ("GET", key)])
            if isinstance(refused, CommandRefused):
                raise refused
        if int(found) != number:
            raise StorageUnusable(
                f"log: {self.address.shown} keeps its data in {int(found)} partitions, not {number}; write "
                f"`?partitions={int(found)}`, or another `?prefix=`")

    async def check_has_data(self) -> None:
        """Raise `NotFound` if no server has stored anything there; nothing is written."""
        await self.parts[0].check_has_data()

    async def close(self) -> None:
        await self.nodes.close()

    async def ask_servers(self, command: Command) -> list[Reply]:
        """Send a command that concerns no key to each primary."""
        return [reply for _, [reply] in await self.ask_primaries([command])]

    async def ask_primaries(self, commands: Sequence[Command]) -> list[tuple[Place, list[Reply]]]:
        """Send commands that concern no keys to each primary; its host and port are beside its replies."""
        return [(place, await reader.read_all(commands)) for place, reader in await self._readers()]

    async def _readers(self) -> list[tuple[Place, NodeReader]]:
        await self.nodes.refresh()
        assert self.nodes.slots is not None
        places = [primary.place for primary in self.nodes.slots.primaries.values()]
        return [(place, NodeReader(self.nodes.node(place))) for place in places]

    async def scan(self, word: str) -> AsyncIterator[str]:
        """The rest of each key, of any partition, that begins with this word."""
        pattern = f"{glob_escaped(self.address.prefix)}{{*}}:{glob_escaped(word)}:*"
        rest = re.compile(re.escape(self.address.prefix) + r"\{[\d.]+\}:" + re.escape(word) + ":(.*)", re.DOTALL)
        for _, reader in await self._readers():
            async for key in scan_keys(reader, pattern):
                if found := rest.fullmatch(key):
                    yield found[1]

    # -- slots that move ------------------------------------------------------------------------------------------

    def _slots_moved(self, before: SlotMap, after: SlotMap) -> None:
        """Tell the partitions whose primary was replaced, and may lack the last of what the one before had.

        A primary that gave a slot away, and is still a primary, has moved the slot with all that it had.
        """
        replaced = set[str]()
        for slot, part in zip(self.slots, self.parts, strict=True):
            old, new = before.primary_of(slot), after.primary_of(slot)
            if old is not None and new is not None and old.id != new.id and old.id not in after.primaries:
                replaced.add(old.id)
                part.primary_changed()
        if replaced:
            self.failovers += len(replaced)
            log.warning("redis_primary_changed", group=self.address.shown, configuration=after.epoch[1],
                        primary=", ".join(f"{host}:{port}" for host, port in {
                            one.place for one in after.primaries.values()}))
