"""A message of which its client heard nothing: it comes when the client has gone, and it comes once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import aiohttp
import pytest
import redis.asyncio

import gateway.model as m
from tests.prove.crash.client_base import CrashRun, DialectClient
from tests.prove.crash.history import times_there
from tests.prove.fleet.allowed_refusals import unexplained_refusals
from tests.prove.fleet.gateways import FleetConversation, calling
from tests.support.cluster.fleet_in_loop import FleetInLoop, fleet_in_loop
from tests.support.dialects.aap import crash_client as aap
from tests.support.dialects.blade import crash_client as blade
from tests.support.redis_server import redis_of_this_run

WORDS = "unheard"


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[FleetInLoop]:
    async with fleet_in_loop(tmp_path, 2) as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with calling() as made:
        yield made


async def left_behind(two: FleetInLoop, client: DialectClient, words: str) -> FleetConversation:
    """The client has said so at the second server, and gone; on its way to the first, which writes, it is held up."""
    talk = FleetConversation(two, client.world.http, seed=1)
    talk.world, talk.clients = client.world, [client]
    there = f"{two.servers[0].address}/aap/sessions"
    async with client.world.http.post(there, json={"agent": {"name": "demo"}}) as answer:
        client.session = (await answer.json())["sessionId"]
    going = asyncio.create_task(client._quietly(client.listen()))
    async with redis.asyncio.Redis(port=redis_of_this_run().port) as line, line.pubsub() as post:
        await post.psubscribe("*to:*")
        two.wires[0].hush()
        saying = asyncio.create_task(client.say(words))
        async with asyncio.timeout(60):
            async for letter in post.listen():
                if b'"asked"' in str(letter["data"]).encode():
                    break
    for task in (saying, going):
        task.cancel()
    await asyncio.wait([saying, going])
    return talk


async def comes(talk: FleetConversation, client: DialectClient) -> None:
    """What was held up reaches the writer, and its turn begins."""
    for wire in talk.fleet.wires:
        wire.mend()
    async with asyncio.timeout(60):
        while (await talk.world.view(client.session)).status is not m.SessionStatus.RUNNING:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def is_fit_for_use(talk: FleetConversation, client: DialectClient) -> None:
    """The turn that runs can be interrupted, and after it another message comes to its end; no promise was broken."""
    async with talk.world.http.delete(f"{talk.world.address}/aap/sessions/{client.session}/turns/current") as answer:
        assert answer.status == 204, await answer.text()
    listening = asyncio.create_task(client._quietly(client.listen()))
    await client.finish()
    listening.cancel()
    await asyncio.wait([listening])
    assert await talk.judged() == []
    assert times_there(WORDS, talk.world.history.logs[client.session]) == 1


def world(two: FleetInLoop, http: aiohttp.ClientSession) -> CrashRun:
    return CrashRun(two.servers[1].address, Random(1), http)


async def test_a_request_whose_client_has_left_is_waited_for_before_a_fleet_is_judged(
    two: FleetInLoop, http: aiohttp.ClientSession,
) -> None:
    client = aap.CrashClient(world(two, http), 0)
    talk = await left_behind(two, client, f"/slow 400 {WORDS}")
    assert (await client.rested()).turns == 0, "to all who look, the session rests"
    settling = asyncio.create_task(talk.settled())
    assert not (await asyncio.wait([settling], timeout=1))[0]
    await comes(talk, client)
    await settling
    await is_fit_for_use(talk, client)
    assert talk.world.found == []


async def test_a_client_is_refused_while_a_message_runs_of_which_it_heard_nothing(
    two: FleetInLoop, http: aiohttp.ClientSession,
) -> None:
    client = blade.CrashClient(world(two, http), 0)
    talk = await left_behind(two, client, f"/slow 400 {WORDS}")
    assert (await client.rested()).turns == 0, "the client looks before it speaks"
    await comes(talk, client)
    listening = asyncio.create_task(client._quietly(client.listen()))
    with pytest.raises(ConnectionError, match="refused"):
        await client.say("hello next")
    listening.cancel()
    await asyncio.wait([listening])
    refusals, talk.world.found = talk.world.found, []
    assert [one.session for one in refusals if "already has an active chat" in one.words] == [client.session]
    await is_fit_for_use(talk, client)
    assert unexplained_refusals(refusals, talk.world.history) == []
    talk.world.history.said = [one for one in talk.world.history.said if one.words != WORDS]
    assert unexplained_refusals(refusals, talk.world.history) == refusals
