"""The cluster of tests fails over, is cut in two, moves its slots and restarts, as a test asks it to."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import redis.cluster
import redis.crc
import redis.exceptions

from tests.support.redis_cluster_servers import MINORITY, ClusterServers
from tests.support.sentinel_servers import GATEWAY, PASSWORD, ask


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ClusterServers]:
    made = ClusterServers(tmp_path / "cluster")
    try:
        made.start()
        yield made
    finally:
        made.close()


def client(servers: ClusterServers) -> redis.cluster.RedisCluster:
    """The library's own client, as an independent look at the cluster."""
    return redis.cluster.RedisCluster(
        host="127.0.0.1", port=servers.nodes[servers.living()[-1]].port, username=GATEWAY, password=PASSWORD)


def key_of(servers: ClusterServers, number: int) -> str:
    return next(key for key in map(str, range(1000)) if servers.owner_of_key(key) == number)


def test_a_replica_takes_the_place_of_a_dead_primary(servers: ClusterServers) -> None:
    key = key_of(servers, 1)
    client(servers).set(key, "kept")
    servers.wait_replicated(1)
    servers.nodes[1].stop(kill=True)
    assert servers.wait_failed_over(1) == 4
    assert client(servers).get(key) == b"kept"
    servers.nodes[1].start()
    servers.wait_follows(1)
    servers.nodes[4].stop(kill=True)
    assert servers.wait_failed_over(4) == 1
    assert client(servers).get(key) == b"kept"


def test_a_primary_is_left_alone_with_a_minority_of_clients(servers: ClusterServers) -> None:
    key = key_of(servers, 0)
    alone, other = servers.nodes[0].port, servers.nodes[1].port
    inside = redis.Redis(port=alone, username=MINORITY, password=PASSWORD)
    inside.ping()
    servers.cut_off(0)
    inside.set(key, "never acknowledged by a replica")
    for port, user in ((alone, GATEWAY), (other, MINORITY)):
        with pytest.raises(redis.AuthenticationError):
            ask(port, "PING", user=user)
    assert servers.wait_failed_over(0) == 3
    ask(servers.nodes[3].port, "SET", key, "said to the majority", user=GATEWAY)
    with pytest.raises(redis.exceptions.ClusterDownError):
        inside.get(key)
    servers.reconnect(0)
    servers.wait_follows(0)
    assert client(servers).get(key) == b"said to the majority"


def test_slots_move_while_they_are_used(servers: ClusterServers) -> None:
    tag = key_of(servers, 2)
    keys = [f"{{{tag}}}:{n}" for n in range(20)]
    for key in keys:
        client(servers).set(key, key)
    slot = redis.crc.key_slot(tag.encode())

    def halfway() -> None:
        held = [servers.ask(number, "CLUSTER", "COUNTKEYSINSLOT", str(slot)) for number in (2, 0)]
        assert held == [10, 10]
        assert [client(servers).get(key) for key in keys] == [key.encode() for key in keys]

    servers.move_slots([slot], 0, halfway)
    servers.wait_well()
    assert servers.owner(slot) == 0
    assert [client(servers).get(key) for key in keys] == [key.encode() for key in keys]


@pytest.mark.parametrize("keep", [True, False])
def test_all_nodes_restart(servers: ClusterServers, keep: bool) -> None:
    keys = [key_of(servers, number) for number in range(3)]
    for key in keys:
        client(servers).set(key, "kept")
    servers.restart_all(keep=keep)
    assert [client(servers).get(key) for key in keys] == [b"kept" if keep else None] * 3
