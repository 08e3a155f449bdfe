"""Three servers on a Redis Cluster, under load, while its nodes break; judged as a fleet is."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
import yaml

import gateway.model as m
from gateway.storage.redis import RedisAddress, RedisPartitions
from tests.prove.crash.client_base import MessageNotAccepted
from tests.prove.fleet.conversations import created, records, say, until_stored
from tests.prove.fleet.gateways import PATIENCE, Fleet, FleetConversation, calling, fleet, server_says
from tests.support.engine.engine_fixture import lawful
from tests.support.redis_cluster_servers import MINORITY, ClusterServers

EACH = 2
"""How many clients of each dialect talk: their sessions are at all nodes."""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ClusterServers]:
    made = ClusterServers(tmp_path / "cluster")
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with calling() as made:
        yield made


@pytest.fixture
async def three(tmp_path: Path, servers: ClusterServers) -> AsyncIterator[Fleet]:
    async with fleet(tmp_path, logs=[servers.url] * 3) as made:
        yield made


def slot_of(servers: ClusterServers, session: str) -> int:
    """The slot that has everything of a session."""
    redis = RedisPartitions(RedisAddress.read(servers.url))
    return redis.slots[redis.number_of(session)]


async def created_at(servers: ClusterServers, http: aiohttp.ClientSession, address: str, node: int) -> str:
    """A new session that is at this node."""
    while True:
        session = await created(http, address)
        if servers.owner(slot_of(servers, session)) == node:
            return session


@pytest.mark.timeout(600)
async def test_primaries_are_killed_under_load_and_come_back_as_replicas(
    three: Fleet, servers: ClusterServers, http: aiohttp.ClientSession,
) -> None:
    talk = FleetConversation(three, http, seed=21, each=EACH)
    await talk.begin()
    for dead in (0, 1):
        await talk.until_heard(200)
        await asyncio.to_thread(servers.nodes[dead].stop, kill=True)
        await asyncio.to_thread(servers.wait_failed_over, dead)
        await talk.until_heard(200)
        await asyncio.to_thread(servers.nodes[dead].start)
        await asyncio.to_thread(servers.wait_follows, dead)
    await talk.until_heard(100)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_a_primary_is_left_alone_with_one_server(
    tmp_path: Path, servers: ClusterServers, http: aiohttp.ClientSession,
) -> None:
    """The other nodes cannot reach it, one server reaches nothing else: what this one writes is not acknowledged."""
    alone = servers.url_with([0], MINORITY)
    async with fleet(tmp_path, logs=[alone, servers.url, servers.url]) as three:
        talk = FleetConversation(three, http, seed=22, each=EACH)
        await talk.begin()
        await talk.until_heard(200)
        await asyncio.to_thread(servers.cut_off, 0)
        await asyncio.to_thread(servers.wait_failed_over, 0)
        await talk.until_heard(200)
        await asyncio.to_thread(servers.reconnect, 0)
        await asyncio.to_thread(servers.wait_follows, 0)
        await talk.until_heard(200)
        assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_slots_move_under_load(three: Fleet, servers: ClusterServers, http: aiohttp.ClientSession) -> None:
    talk = FleetConversation(three, http, seed=23, each=EACH)
    await talk.begin()
    for to in (0, 1):
        await talk.until_heard(200)
        slots = {slot_of(servers, client.session) for client in talk.clients}
        for slot in slots:
            if servers.owner(slot) != to:
                await asyncio.to_thread(servers.move_slots, [slot], to)
        await asyncio.to_thread(servers.wait_well)
    await talk.until_heard(200)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_what_no_replica_has_is_not_acknowledged(
    three: Fleet, servers: ClusterServers, http: aiohttp.ClientSession,
) -> None:
    """With `wait=1`, a replica that lacks the last writes lacks nothing that anybody was told."""
    talk = FleetConversation(three, http, seed=24, each=EACH)
    await talk.begin()
    await talk.until_heard(200)
    await asyncio.to_thread(servers.stop_replication, 2)
    await talk.until_heard(50)  # of the sessions at other nodes
    await asyncio.to_thread(servers.nodes[2].stop, kill=True)
    await asyncio.to_thread(servers.wait_failed_over, 2)
    await talk.until_heard(50)
    await asyncio.to_thread(servers.nodes[2].start)  # the primary that was promoted has no other replica
    await talk.until_heard(200)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_what_a_promoted_replica_lacks_is_lost_everywhere_if_nobody_waits(
    tmp_path: Path, servers: ClusterServers, http: aiohttp.ClientSession,
) -> None:
    """With `wait=0` what came last at one node is lost, and nothing else; all servers say the same of it."""
    async with fleet(tmp_path, logs=[f"{servers.url}?wait=0"] * 3) as three:
        first, second, third = (server.address for server in three.servers)
        kept = await created_at(servers, http, first, 0)
        elsewhere = await created_at(servers, http, second, 1)
        await say(http, kept, first, "before")
        running = asyncio.create_task(say(http, kept, second, "/slow 600"))
        beside = asyncio.create_task(say(http, elsewhere, third, "/slow 100"))
        await until_stored(http, kept, third, "/slow 600")
        await asyncio.to_thread(servers.wait_replicated, 0)
        await asyncio.to_thread(servers.stop_replication, 0)
        lost = await created_at(servers, http, second, 0)
        await say(http, lost, third, "nobody will know")
        told = len(await records(http, kept, third))
        await until_longer(http, kept, third, told + 2)
        await asyncio.to_thread(servers.nodes[0].stop, kill=True)
        await asyncio.to_thread(servers.wait_failed_over, 0)
        for server in three.servers:
            await server_says(server, "redis_primary_changed")
        await asyncio.gather(running, beside)
        await say(http, kept, third, "after")
        logs = [await records(http, kept, address) for address in (first, second, third)]
        assert logs[0] == logs[1] == logs[2]
        lawful(logs[0])
        assert faults(logs[0]) == [None, "interrupted", None]
        assert faults(await records(http, elsewhere, first)) == [None]
        for address in (first, second, third):
            async with http.get(f"{address}/replay/{lost}") as answer:
                assert answer.status == 404, await answer.text()


async def until_longer(http: aiohttp.ClientSession, session: str, address: str, length: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(await records(http, session, address)) < length:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def faults(records: list[m.Record]) -> list[str | None]:
    """The fault of each turn that has ended."""
    ends = [record.event for record in records if isinstance(record.event, m.TurnEnded)]
    return [end.fault.code if end.fault else None for end in ends]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kill", [False, True])
async def test_all_nodes_restart_with_their_data(
    three: Fleet, servers: ClusterServers, http: aiohttp.ClientSession, kill: bool,
) -> None:
    talk = FleetConversation(three, http, seed=25, each=EACH)
    await talk.begin()
    await talk.until_heard(200)
    await asyncio.to_thread(servers.restart_all, kill=kill)
    await talk.until_heard(200)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_all_nodes_restart_without_their_data(
    three: Fleet, servers: ClusterServers, http: aiohttp.ClientSession,
) -> None:
    """Streams end, every server has forgotten every session, says so, and goes on with new ones."""
    talk = FleetConversation(three, http, seed=26)
    sessions = [await created_at(servers, http, three.address, node) for node in range(3)]
    watching = [
        asyncio.create_task(watched(http, f"{server.address}/api/v1/cloud/sessions/{session}/events/stream"))
        for server in three.servers for session in sessions]
    turns = [asyncio.create_task(say(http, session, three.address, "/slow 1000")) for session in sessions]
    for session in sessions:
        await until_stored(http, session, three.address, "/slow 1000")
    await asyncio.to_thread(servers.restart_all, kill=True, keep=False)
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*watching, *turns)
    for server in three.servers:
        await server_says(server, "redis_data_lost")
        for session in sessions:
            for path in (f"/aap/sessions/{session}", f"/api/v1/cloud/sessions/{session}", f"/replay/{session}"):
                async with http.get(f"{server.address}{path}") as answer:
                    assert answer.status == 404, (path, await answer.text())
        async with http.get(f"{server.address}/api/v1/cloud/sessions") as answer:
            assert (await answer.json())["data"] == []
    async with asyncio.timeout(PATIENCE):
        while True:  # a server notices the loss in each partition by itself
            with suppress(MessageNotAccepted):
                await talk.begin()
                break
            await asyncio.sleep(0.05)
    await talk.until_heard(100)
    assert await talk.verdict() == [], three.errors()


async def watched(http: aiohttp.ClientSession, url: str) -> None:
    """Until the stream ends, or is torn."""
    async with http.get(url) as answer:
        with suppress(aiohttp.ClientPayloadError):
            await answer.read()


@pytest.mark.timeout(600)
async def test_a_cluster_without_room_is_read_and_written_again_when_there_is_room(
    three: Fleet, servers: ClusterServers, http: aiohttp.ClientSession,
) -> None:
    first, second, third = (server.address for server in three.servers)
    session = await created(http, first)
    await say(http, session, second, "before")
    for number in range(len(servers.nodes)):
        await asyncio.to_thread(servers.ask, number, "CONFIG", "SET", "maxmemory", "1")
    before = await records(http, session, third)
    for words, status in (("perhaps", 504), ("refused", 503)):
        async with http.post(f"{first}/aap/sessions/{session}/turns", json={
            "stream": "delta", "messages": [{"role": "user", "content": words}]}) as answer:
            assert answer.status == status, await answer.text()
    for server in three.servers:
        assert await records(http, session, server.address) == before
    for number in range(len(servers.nodes)):
        await asyncio.to_thread(servers.ask, number, "CONFIG", "SET", "maxmemory", "0")
    await say(http, session, third, "after", until_taken=True)
    log = await records(http, session, first)
    lawful(log)
    assert faults(log)[0] is faults(log)[-1] is None
    assert "refused" not in str(log)


@pytest.mark.timeout(600)
async def test_an_installation_moves_to_a_cluster_between_two_turns(
    tmp_path: Path, servers: ClusterServers, http: aiohttp.ClientSession,
) -> None:
    """What clients were told before the move is judged by what the cluster has after it."""
    async with fleet(tmp_path) as three:
        talk = FleetConversation(three, http, seed=27, each=EACH)
        await talk.begin()
        await talk.until_heard(200)
        await talk.stop()
        for server in three.servers:
            await server.end(signal.SIGTERM)
        first, to = three.servers[0].folder / "config.yaml", f"{servers.url}?wait=1"
        program = [sys.executable, "-c", "from gateway.cli import main; main()", "log", "move", "--to", to]
        moved = await asyncio.create_subprocess_exec(*program, "--config", first, stdout=asyncio.subprocess.PIPE)
        printed, _ = await moved.communicate()
        assert printed.startswith(f"moved {len(talk.clients)} sessions".encode()), printed
        for server in three.servers:
            file = server.folder / "config.yaml"
            file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "log": to}))
            await server.start()
        for server in three.servers:
            await server.wait_ready()
        assert await talk.verdict() == [], three.errors()
