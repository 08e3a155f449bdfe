"""Three gateways as one: clients of all dialects talk while servers die, and the judge finds no promise broken."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.prove.fleet.gateways import FleetConversation, calling
from tests.support.cluster.fleet_in_loop import FleetInLoop, fleet_in_loop


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[FleetInLoop]:
    async with fleet_in_loop(tmp_path, 3) as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with calling() as made:
        yield made


async def test_servers_die_in_the_middle_of_turns(three: FleetInLoop, http: aiohttp.ClientSession) -> None:
    talk = FleetConversation(three, http, seed=2)
    talk.world.thinking, talk.world.patience = 1.0, 0.5
    await talk.begin()
    for server in three.servers:
        await talk.until_heard(40)
        await server.die()
        await talk.until_heard(40)
        await server.start()
    await talk.until_heard(40)
    assert await talk.verdict() == []


async def test_a_session_is_created_once_under_one_key_whatever_servers_are_asked(
    three: FleetInLoop, http: aiohttp.ClientSession,
) -> None:
    async def create(address: str, key: str) -> str:
        body = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}
        url = f"{address}/api/v1/cloud/sessions"
        async with http.post(url, json=body, headers={"Idempotency-Key": key}) as answer:
            assert answer.status == 201, await answer.text()
            return str((await answer.json())["id"])

    addresses = [server.address for server in three.servers]
    made = await asyncio.gather(*(create(address, "key") for address in (*addresses, *addresses)))
    assert len(set(made)) == 1
    assert await create(addresses[1], "key") == made[0] != await create(addresses[1], "other key")
    async with http.get(f"{addresses[2]}/api/v1/cloud/sessions") as answer:
        assert len((await answer.json())["data"]) == 2
