"""Three gateways as one: clients of all dialects talk while servers die, and the judge finds no promise broken."""

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
