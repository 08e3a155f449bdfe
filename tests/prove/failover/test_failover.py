"""Three servers behind sentinels, under load, while other Redis servers become the primary; judged as a fleet is."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

import gateway.model as m
from tests.prove.fleet.conversations import created, records, say, until_stored
from tests.prove.fleet.gateways import Fleet, FleetConversation, calling, fleet, server_says
from tests.support.engine.engine_fixture import lawful
from tests.support.sentinel_servers import GROUP, SentinelServers, ask


@pytest.fixture
def group(tmp_path: Path) -> Iterator[SentinelServers]:
    made = SentinelServers(tmp_path / "group")
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
async def three(tmp_path: Path, group: SentinelServers) -> AsyncIterator[Fleet]:
    async with fleet(tmp_path, logs=[group.url] * 3) as made:
        yield made


@pytest.mark.timeout(600)
async def test_the_primary_is_killed_under_load_and_comes_back_as_a_replica(
    three: Fleet, group: SentinelServers, http: aiohttp.ClientSession,
) -> None:
    talk = FleetConversation(three, http, seed=11)
    await talk.begin()
    for _ in range(2):
        await talk.until_heard(150)
        dead = group.primary()
        await asyncio.to_thread(group.nodes[dead].stop, kill=True)
        await asyncio.to_thread(group.wait_failed_over, dead)
        await talk.until_heard(150)
        await asyncio.to_thread(group.nodes[dead].start)
        await asyncio.to_thread(group.wait_follows, dead)
    await talk.until_heard(100)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_a_primary_is_replaced_while_it_lives(
    tmp_path: Path, group: SentinelServers, http: aiohttp.ClientSession,
) -> None:
    """For seconds there are two primaries, and a replica follows the old one: `wait` must be the number of replicas."""
    async with fleet(tmp_path, logs=[f"{group.url}?wait=2"] * 3) as three:
        talk = FleetConversation(three, http, seed=12)
        await talk.begin()
        await talk.until_heard(150)
        before = group.primary()
        await asyncio.to_thread(ask, group.ports[0], "SENTINEL", "FAILOVER", GROUP)
        await asyncio.to_thread(group.wait_failed_over, before)
        await talk.until_heard(200)
        assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_all_nodes_restart_with_their_data(
    three: Fleet, group: SentinelServers, http: aiohttp.ClientSession,
) -> None:
    talk = FleetConversation(three, http, seed=13)
    await talk.begin()
    await talk.until_heard(150)
    primary = group.primary()
    others = [number for number in range(3) if number != primary]
    for number in (*others, primary):
        await asyncio.to_thread(group.nodes[number].stop)
    for number in (primary, *others):
        await asyncio.to_thread(group.nodes[number].start)
    await talk.until_heard(150)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_a_primary_is_cut_off_together_with_one_server(
    tmp_path: Path, group: SentinelServers, http: aiohttp.ClientSession,
) -> None:
    """Replicas and sentinels cannot reach it, one server still does: nothing that this one writes is acknowledged."""
    alone = group.url_with(group.ports[:1])
    async with fleet(tmp_path, logs=[alone, group.url, group.url]) as three:
        talk = FleetConversation(three, http, seed=14)
        await talk.begin()
        await talk.until_heard(150)
        before = group.primary()
        group.pause_sentinel(0)
        group.cut_off(before)
        await asyncio.to_thread(group.wait_failed_over, before, 1)
        await talk.until_heard(150)
        group.reconnect(before)
        group.resume_sentinel(0)
        await asyncio.to_thread(group.wait_follows, before)
        await talk.until_heard(150)
        assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_a_replica_that_lacks_the_last_writes_is_promoted(
    tmp_path: Path, group: SentinelServers, http: aiohttp.ClientSession,
) -> None:
    """With `wait=0` what came last is lost, and nothing else; all servers say the same of it, and a turn has an end."""
    async with fleet(tmp_path, logs=[f"{group.url}?wait=0"] * 3) as three:
        first, second, third = (server.address for server in three.servers)
        kept, lost = await created(http, first), ""
        await say(http, kept, first, "before")
        running = asyncio.create_task(say(http, kept, second, "/slow 600"))
        await until_stored(http, kept, third, "/slow 600")
        before = group.primary()
        await asyncio.to_thread(group.wait_replicated, before)
        group.stop_replication(before)
        lost = await created(http, second)
        await say(http, lost, third, "nobody will know")
        told = len(await records(http, kept, first))
        await asyncio.to_thread(group.nodes[before].stop, kill=True)
        await asyncio.to_thread(group.wait_failed_over, before)
        for server in three.servers:
            await server_says(server, "redis_primary_changed")
        await running
        await say(http, kept, third, "after")
        logs = [await records(http, kept, address) for address in (first, second, third)]
        assert logs[0] == logs[1] == logs[2]
        lawful(logs[0])
        ends = [record.event for record in logs[0] if isinstance(record.event, m.TurnEnded)]
        assert [end.fault and end.fault.code for end in ends] == [None, "interrupted", None]
        assert told > 0
        for address in (first, second, third):
            async with http.get(f"{address}/replay/{lost}") as answer:
                assert answer.status == 404, await answer.text()
