"""A Redis Cluster of a test's own on loopback: three primaries and three replicas, which a test breaks."""

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import redis.crc

from tests.support.free_ports import free_port
from tests.support.redis_server import HANG, RedisServer
from tests.support.sentinel_servers import GATEWAY, PASSWORD, REPLICA, SentinelServers, ask

MINORITY = "minority"
"""The user of those clients that stay on the side of a primary that is cut off."""
NODE_TIMEOUT_MS = 1000
"""After how long without an answer a node takes another one for dead; a failover takes about a second longer."""
SLOTS = 16384
wait = SentinelServers.wait


class ClusterBus:
    """The lines on which the nodes talk to each other: each node is reached at a port of ours, which passes bytes on.

    Node N connects from the address 127.0.1.N, so that the lines of one node can be cut, in both directions.
    """

    def __init__(self, targets: Sequence[int]) -> None:
        self._targets = targets
        self.ports = [free_port() for _ in targets]
        self._cut: set[int] = set()
        self._lines: dict[asyncio.StreamWriter, tuple[int, int]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cluster bus", daemon=True)

    @staticmethod
    def source(number: int) -> str:
        return f"127.0.1.{number + 1}"

    def start(self) -> None:
        self._thread.start()
        for number in range(len(self._targets)):
            self._call(self._listen(number))

    async def _listen(self, number: int) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._pass_on(number, reader, writer)
        await asyncio.start_server(serve, "127.0.0.1", self.ports[number])

    async def _pass_on(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = int(writer.get_extra_info("peername")[0].rpartition(".")[2]) - 1, number
        there = None
        self._lines[writer] = ends
        try:
            if not self._cut.intersection(ends):
                there_reader, there = await asyncio.open_connection("127.0.0.1", self._targets[number])
                await asyncio.wait(
                    [asyncio.create_task(copy(reader, there)), asyncio.create_task(copy(there_reader, writer))],
                    return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass  # the node is dead
        finally:
            self._lines.pop(writer, None)
            for end in (writer, there):
                if end is not None:
                    end.transport.abort()

    def cut(self, number: int) -> None:
        """Nothing passes between this node and the others."""
        async def cut() -> None:
            self._cut.add(number)
            for writer in [writer for writer, ends in self._lines.items() if number in ends]:
                writer.transport.abort()
        self._call(cut())

    def mend(self, number: int) -> None:
        self._cut.discard(number)

    def _call(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(HANG)

    def close(self) -> None:
        async def stop() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        if self._thread.is_alive():
            self._call(stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(HANG)
        self._loop.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while some := await reader.read(65536):
            writer.write(some)
            await writer.drain()


class ClusterServers:
    """Nodes by number: the first ones begin as primaries, and node `primaries + N` as the replica of node N."""

    def __init__(self, folder: Path, *options: str, primaries: int = 3, replicas: int = 3) -> None:
        self.primaries, count = primaries, primaries + replicas
        buses = [free_port() for _ in range(count)]
        self.bus = ClusterBus(buses)
        for user in (GATEWAY, MINORITY, REPLICA):
            options += ("--user", user, "on", f">{PASSWORD}", "~*", "&*", "+@all")
        self.nodes = [
            RedisServer(
                folder / f"node{n}", None, *options, "--masteruser", REPLICA, "--masterauth", PASSWORD,
                "--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS),
                "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0",
                "--cluster-announce-ip", "127.0.0.1", "--bind-source-addr", self.bus.source(n),
                "--cluster-port", str(buses[n]), "--cluster-announce-bus-port", str(self.bus.ports[n]))
            for n in range(count)]

    @property
    def url(self) -> str:
        return self.url_with(range(len(self.nodes)))

    def url_with(self, nodes: Iterable[int], user: str = GATEWAY) -> str:
        """The address of the cluster that names these nodes to begin with."""
        places = ",".join(f"127.0.0.1:{self.nodes[number].port}" for number in nodes)
        return f"redis+cluster://{user}:{PASSWORD}@{places}"

    def ask(self, number: int, *words: str | bytes) -> Any:
        """One command at one node, wherever its keys are."""
        return ask(self.nodes[number].port, *words, user=GATEWAY)

    # -- begin and end --------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.bus.start()
        for node in self.nodes:
            node.start()
        self.create()

    def create(self) -> None:
        """Make one cluster of empty nodes."""
        for number in range(self.primaries):
            first, end = SLOTS * number // self.primaries, SLOTS * (number + 1) // self.primaries
            self.ask(number, "CLUSTER", "ADDSLOTSRANGE", str(first), str(end - 1))
            self.ask(number, "CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        for number in range(1, len(self.nodes)):
            self.ask(0, "CLUSTER", "MEET", "127.0.0.1", str(self.nodes[number].port), str(self.bus.ports[number]))
        everybody = range(len(self.nodes))
        wait(lambda: all(len(self._table(n)) == len(self.nodes) for n in everybody), "the nodes do not meet")
        for number in range(self.primaries, len(self.nodes)):
            self.ask(number, "CLUSTER", "REPLICATE", self.id(number - self.primaries))
        self.wait_well()
        for number in range(self.primaries, len(self.nodes)):
            self.wait_follows(number)

    def close(self) -> None:
        for node in self.nodes:
            node.stop(kill=True)
        self.bus.close()

    # -- who is who -----------------------------------------------------------------------------------------------

    def id(self, number: int) -> str:
        found: bytes = self.ask(number, "CLUSTER", "MYID")
        return found.decode()

    def _table(self, seen_by: int) -> dict[int, list[str]]:
        """The fields of CLUSTER NODES by the number of the node, as one node sees the cluster."""
        lines = self.ask(seen_by, "CLUSTER", "NODES").decode().splitlines()
        ports = [node.port for node in self.nodes]
        rows = [line.split() for line in lines if "handshake" not in line and "noaddr" not in line]
        return {ports.index(int(row[1].partition("@")[0].rpartition(":")[2])): row for row in rows}

    def living(self) -> list[int]:
        return [number for number, node in enumerate(self.nodes) if node.is_running]

    def _ranges(self, seen_by: int) -> list[tuple[int, int, int]]:
        """The first and the last slot of each range, and the number of its primary."""
        ports = [node.port for node in self.nodes]
        return sorted((first, last, ports.index(primary[1])) for first, last, primary, *_ in self.ask(
            seen_by, "CLUSTER", "SLOTS"))

    def owner(self, slot: int, seen_by: int | None = None) -> int:
        """The number of the primary that has this slot."""
        for first, last, number in self._ranges(self.living()[0] if seen_by is None else seen_by):
            if first <= slot <= last:
                return number
        raise LookupError(f"nobody has slot {slot}")

    def owner_of_key(self, key: str, seen_by: int | None = None) -> int:
        return self.owner(redis.crc.key_slot(key.encode()), seen_by)

    def slots(self, number: int) -> list[int]:
        """The slots of one primary."""
        return [slot for first, last, owner in self._ranges(number) if owner == number
                for slot in range(first, last + 1)]

    def is_primary(self, number: int) -> bool:
        return bool(self.ask(number, "ROLE")[0] == b"master")

    def replicas_of(self, number: int, seen_by: int | None = None) -> list[int]:
        table = self._table(number if seen_by is None else seen_by)
        return [n for n, row in table.items() if row[3] == table[number][0]]

    # -- until it is so -------------------------------------------------------------------------------------------

    def wait_well(self, but: Sequence[int] = ()) -> None:
        """Until every living node but these takes the cluster for whole."""
        def is_well() -> bool:
            asked = [number for number in self.living() if number not in but]
            views = [self._ranges(number) for number in asked]
            return all(view == views[0] for view in views) and all(
                b"cluster_state:ok" in self.ask(number, "CLUSTER", "INFO") for number in asked)
        wait(is_well, "the cluster is not whole")

    def wait_failed_over(self, before: int, but: Sequence[int] = ()) -> int:
        """Until a replica of this primary has its slots, and all nodes but it and `but` know; returns its number."""
        seen_by = next(number for number in self.living() if number not in (before, *but))
        its_slot = self.first_slot(before)
        wait(lambda: self.owner(its_slot, seen_by) != before, f"node {before} stays the primary of slot {its_slot}")
        self.wait_well((before, *but))
        return self.owner(its_slot, seen_by)

    def first_slot(self, number: int) -> int:
        """The first of the slots that a node and its replica, or its primary, began with."""
        return SLOTS * (number % self.primaries) // self.primaries

    def wait_follows(self, number: int) -> None:
        """Until this node is a replica that has all that its primary has."""
        def follows() -> bool:
            role = self.ask(number, "ROLE")
            return bool(role[0] == b"slave" and role[3] == b"connected")
        wait(follows, f"node {number} does not become a replica")

    def wait_replicated(self, number: int) -> None:
        """Until its replicas have all that this primary has."""
        self.ask(number, "WAIT", str(len(self.replicas_of(number))), "10000")

    # -- what breaks ----------------------------------------------------------------------------------------------

    def stop_replication(self, number: int) -> None:
        """Replicas get nothing from this node any more."""
        self._refuse(number, REPLICA)

    def cut_off(self, number: int) -> None:
        """Only clients that are the user `minority` can talk to this node, and only they; they reach no other node."""
        self.bus.cut(number)
        self._refuse(number, REPLICA)
        for other in self.living():
            if other != number:
                self._refuse(other, MINORITY)
        self._refuse(number, GATEWAY)

    def reconnect(self, number: int) -> None:
        """The cut node is one of the cluster again; it becomes a replica if another one has its slots."""
        for node in self.living():
            for user in (REPLICA, GATEWAY, MINORITY):
                ask(self.nodes[node].port, "ACL", "SETUSER", user, "on", user=MINORITY if node == number else GATEWAY)
        self.bus.mend(number)

    def _refuse(self, number: int, user: str) -> None:
        """The node refuses this user, and breaks the user's connections; our own is the last one."""
        as_user = MINORITY if user == GATEWAY else GATEWAY
        port = self.nodes[number].port
        ask(port, "ACL", "SETUSER", user, "off", user=as_user)
        ask(port, "CLIENT", "KILL", "USER", user, user=as_user)

    def restart_all(self, *, kill: bool = False, keep: bool = True) -> None:
        """All nodes stop, and start again with what they have stored; if not `keep`, they know only each other."""
        for node in self.nodes:
            node.stop(kill=kill)
            if not keep:
                shutil.rmtree(node.folder / "appendonlydir")
        for node in self.nodes:
            node.start()
        self.wait_well()

    def move_slots(self, slots: Sequence[int], to: int, halfway: Callable[[], None] = lambda: None) -> None:
        """Move slots of one primary to another, key by key; `halfway` is called when half of the keys are moved."""
        source = self.owner(slots[0])
        origin, goal = self.id(source), self.id(to)
        for slot in slots:
            self.ask(to, "CLUSTER", "SETSLOT", str(slot), "IMPORTING", origin)
            self.ask(source, "CLUSTER", "SETSLOT", str(slot), "MIGRATING", goal)
        held = [key for slot in slots
                for key in self.ask(source, "CLUSTER", "GETKEYSINSLOT", str(slot), "1000000")]
        for key in held[::2]:
            self._migrate(source, to, key)
        halfway()
        for slot in slots:
            while keys := self.ask(source, "CLUSTER", "GETKEYSINSLOT", str(slot), "100"):
                for key in keys:
                    self._migrate(source, to, key)
        for number in (to, source, *(n for n in self.living() if n not in (to, source) and self.is_primary(n))):
            for slot in slots:
                self.ask(number, "CLUSTER", "SETSLOT", str(slot), "NODE", goal)

    def _migrate(self, source: int, to: int, key: bytes) -> None:
        self.ask(source, "MIGRATE", "127.0.0.1", str(self.nodes[to].port), key, "0", str(int(HANG * 1000)),
                 "AUTH2", GATEWAY, PASSWORD)
