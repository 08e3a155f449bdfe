"""A fleet on this machine: replicas that share a Redis, and what a piece of work costs each of them."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import redis

from bench.contenders import mock, ours_shared
from bench.load import warm_up
from bench.measure import choose_cores, cpu_time
from bench.protocols import words
from bench.scenarios.workers import redis_server
from bench.servers import Server
from tests.support.redis_cluster_servers import ClusterServers
from tests.support.sentinel_servers import GATEWAY, PASSWORD

WARM_DELTAS = 50


@dataclass(frozen=True)
class Spent:
    """CPU seconds and memory: of the replicas together, and of the primaries of Redis together."""

    replicas: float
    waited: float
    """How long the replicas waited for a core."""
    redis: float
    scripts: int
    """How many scripts Redis has run."""


class Primary(NamedTuple):
    """A Redis server, and how to ask it how it is."""

    address: str
    pid: int

    def info(self, section: str) -> dict[str, Any]:
        with redis.Redis.from_url(self.address) as client:
            return dict(client.info(section))

    @property
    def used_memory(self) -> int:
        return int(self.info("memory")["used_memory"])

    @property
    def scripts_run(self) -> int:
        return int(self.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0))


@dataclass(frozen=True)
class Fleet:
    """Replicas that run, and the Redis that they share."""

    servers: Sequence[Server]
    primaries: Sequence[Primary]

    def spent(self) -> Spent:
        replicas = [server.spent() for server in self.servers]
        return Spent(sum(one.cpu for one in replicas), sum(one.waited for one in replicas),
                     sum(cpu_time(primary.pid).cpu for primary in self.primaries),
                     sum(primary.scripts_run for primary in self.primaries))

    def redis_bytes(self) -> int:
        """What all primaries store, with their own structures."""
        return sum(primary.used_memory for primary in self.primaries)

    def replica_bytes(self) -> int:
        return sum(server.rss() for server in self.servers)


def cost(fleet: Fleet, work: Callable[[], object]) -> Spent:
    """What a piece of work costs."""
    before = fleet.spent()
    work()
    after = fleet.spent()
    return Spent(after.replicas - before.replicas, after.waited - before.waited, after.redis - before.redis,
                 after.scripts - before.scripts)


@contextmanager
def running_fleet(folder: Path, replicas: int, primaries: int) -> Iterator[Fleet]:
    """So many replicas behind which there is a model service, on so many primaries, warm."""
    cores = choose_cores()
    with ExitStack() as stack:
        log, found = stack.enter_context(redis_group(folder, primaries, cores.client))
        service = stack.enter_context(Server(mock(), folder, cores.client))
        servers = [
            stack.enter_context(Server(ours_shared(f"replica{number}", service.port, log), folder, cores.server))
            for number in range(replicas)]
        for server in servers:
            warm_up([server], words(WARM_DELTAS))
        yield Fleet(servers, found)


@contextmanager
def redis_group(folder: Path, primaries: int, core: int) -> Iterator[tuple[str, list[Primary]]]:
    """The log for `config.yaml`, and the primaries: one server, or a cluster without replicas; all on one core."""
    if primaries == 1:
        with redis_server(folder, core) as (port, pid):
            yield f"redis://127.0.0.1:{port}/0", [Primary(f"redis://127.0.0.1:{port}/0", pid)]
        return
    servers = ClusterServers(folder / "cluster", "--appendonly", "no", primaries=primaries, replicas=0)
    try:
        servers.start()
        found = [Primary(f"redis://{GATEWAY}:{PASSWORD}@127.0.0.1:{node.port}/0", node._process.pid)
                 for node in servers.nodes if node._process is not None]
        for primary in found:
            os.sched_setaffinity(primary.pid, {core})
        yield f"{servers.url}?wait=0", found
    finally:
        servers.close()




def redis_version() -> str:
    said = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    return said.partition("v=")[2].split()[0]
