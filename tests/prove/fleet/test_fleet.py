"""Three servers as one: whatever happens to them or to Redis, the judge of histories finds no promise broken."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import gateway.model as m
from tests.prove.crash.client_base import blocks
from tests.prove.crash.killable_server import KillableProcess
from tests.prove.fleet.gateways import LEASE, PATIENCE, Fleet, FleetConversation, calling, fleet, server_says
from tests.support.engine.engine_fixture import lawful


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with fleet(tmp_path) as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with calling() as made:
        yield made


@pytest.mark.timeout(600)
async def test_any_server_takes_any_command_and_tells_any_session(three: Fleet, http: aiohttp.ClientSession) -> None:
    talk = FleetConversation(three, http, seed=1)
    await talk.begin()
    await talk.until_heard(600)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_a_turn_starts_at_one_server_is_streamed_by_another_and_answered_at_a_third(
    three: Fleet, http: aiohttp.ClientSession,
) -> None:
    first, second, third = (server.address for server in three.servers)
    tools = [{"name": "clock", "trust": True}, {"name": "calc"}]
    async with http.post(f"{first}/aap/sessions", json={"agent": {"name": "demo", "tools": tools}}) as answer:
        session = (await answer.json())["sessionId"]
    there = f"/api/v1/cloud/sessions/{session}/events"
    async with http.get(f"{second}{there}/stream?stream_start=replay") as stream:
        heard = events(stream.content)
        async with http.post(f"{first}/aap/sessions/{session}/turns", json={
            "stream": "none", "messages": [{"role": "user", "content": "/permit"}]}) as answer:
            assert (await answer.json())["stopReason"] == "tool_use"
        asked = [event async for event in upto(heard, "session.status_idle")]
        assert asked[-1]["stop_reason"]["type"] == "requires_action"
        wanted, = asked[-1]["stop_reason"]["event_ids"]
        async with http.post(f"{third}{there}", json={"events": [
            {"type": "user.tool_confirmation", "tool_use_id": wanted, "result": "allow"}]}) as answer:
            assert answer.status == 202, await answer.text()
        rest = [event async for event in upto(heard, "session.status_idle")]
        assert rest[-1]["stop_reason"]["type"] == "end_turn"
    every = [event["id"] for event in (*asked, *rest)]
    async with http.get(f"{third}{there}?limit=100") as answer:
        assert [event["id"] for event in (await answer.json())["data"]] == every
    async with http.get(f"{first}/replay/{session}") as one, http.get(f"{second}/replay/{session}") as other:
        assert await one.read() == await other.read()


async def events(content: aiohttp.StreamReader) -> AsyncIterator[dict[str, Any]]:
    async for block in blocks(content):
        yield json.loads(block.split("data: ", 1)[1])


async def upto(heard: AsyncIterator[dict[str, Any]], last: str) -> AsyncIterator[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE):
        while True:
            event = await anext(heard)
            yield event
            if event["type"] == last:
                return


@pytest.mark.timeout(600)
async def test_who_listened_to_a_server_that_slept_hears_from_it_how_the_turn_ended(
    three: Fleet, http: aiohttp.ClientSession,
) -> None:
    """Its own words since it fell asleep are fenced off: the log has what was said by the server that took over."""
    sleeper, other = three.servers[0], three.servers[1]
    async with http.post(f"{sleeper.address}/aap/sessions", json={"agent": {"name": "demo"}}) as answer:
        session = (await answer.json())["sessionId"]
    said = {"stream": "delta", "messages": [{"role": "user", "content": "/slow 1000"}]}
    async with (
        http.get(f"{sleeper.address}/api/v1/cloud/sessions/{session}/events/stream?stream_start=replay") as stream,
        http.post(f"{sleeper.address}/aap/sessions/{session}/turns", json=said) as turn,
    ):
        await turn.content.readuntil(b"text_delta")
        await three.pause(0, 3 * LEASE)
        told = [event async for event in upto(events(stream.content), "session.status_idle")]
        assert b"event: turn_stop" in await turn.read()
    assert "session.error" in [event["type"] for event in told]
    async with http.get(f"{other.address}/replay/{session}") as answer:
        records = [m.decode_record(line) for line in (await answer.read()).splitlines()]
    lawful(records)
    ends = [record.event for record in records if isinstance(record.event, m.TurnEnded)]
    assert [end.fault.code for end in ends if end.fault] == ["interrupted"]


@pytest.mark.timeout(600)
async def test_servers_are_killed_in_the_middle_of_turns(three: Fleet, http: aiohttp.ClientSession) -> None:
    talk = FleetConversation(three, http, seed=2)
    await talk.begin()
    for number in (0, 1, 2):
        await talk.until_heard(100)
        await three.servers[number].end()
        await talk.until_heard(100)
        await three.back(number)
    await talk.until_heard(100)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_a_server_sleeps_past_its_lease_and_comes_back(three: Fleet, http: aiohttp.ClientSession) -> None:
    talk = FleetConversation(three, http, seed=3)
    await talk.begin()
    for number in (0, 1, 2):
        await talk.until_heard(100)
        await three.pause(number, 2 * LEASE)
    await talk.until_heard(100)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["cut", "hush"])
async def test_the_network_to_one_server_is_cut(three: Fleet, http: aiohttp.ClientSession, how: str) -> None:
    talk = FleetConversation(three, http, seed=4)
    await talk.begin()
    for number in (0, 1):
        await talk.until_heard(100)
        getattr(three.wires[number], how)()
        await asyncio.sleep(2 * LEASE)
        three.wires[number].mend()
    await talk.until_heard(100)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kill", [False, True])
async def test_redis_comes_back_with_its_data(three: Fleet, http: aiohttp.ClientSession, kill: bool) -> None:
    talk = FleetConversation(three, http, seed=5)
    await talk.begin()
    for _ in range(2):
        await talk.until_heard(100)
        await asyncio.to_thread(three.redis.stop, kill=kill)
        await asyncio.sleep(1.0)
        await asyncio.to_thread(three.redis.start)
    await talk.until_heard(100)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_a_server_that_is_told_to_stop_hands_its_sessions_over(three: Fleet, http: aiohttp.ClientSession) -> None:
    talk = FleetConversation(three, http, seed=6)
    await talk.begin()
    for number in (0, 1, 2):
        await talk.until_heard(100)
        await three.servers[number].end(signal.SIGTERM)
        await talk.until_heard(50)
        await three.back(number)
    assert await talk.verdict() == [], three.errors()


@pytest.mark.timeout(600)
async def test_an_operator_drains_one_server_after_the_other(three: Fleet, http: aiohttp.ClientSession) -> None:
    talk = FleetConversation(three, http, seed=8)
    await talk.begin()
    for number in (0, 1, 2):
        await talk.until_heard(100)
        server = three.servers[number]
        name = next(one["report"]["name"] for one in (await cluster_status(server))
                    if one["report"]["name"].endswith(f":{server.port}"))
        assert await command(server, "drain", name) == ""
        await server.ended()
        assert name not in [one["report"]["name"] for one in await cluster_status(server)]
        await talk.until_heard(50)
        await three.back(number)
    assert await talk.verdict() == [], three.errors()


async def cluster_status(server: KillableProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(await command(server, "status", "--json"))["replicas"]
    return found


async def command(server: KillableProcess, *words: str) -> str:
    """What `dragoman cluster` prints, with the settings of a server."""
    program = [sys.executable, "-c", "from gateway.cli import main; main()", "cluster", *words]
    made = await asyncio.create_subprocess_exec(
        *program, "--config", server.folder / "config.yaml", stdout=asyncio.subprocess.PIPE)
    printed, _ = await made.communicate()
    assert made.returncode == 0, words
    return printed.decode()


@pytest.mark.timeout(600)
async def test_redis_comes_back_without_its_data(three: Fleet, http: aiohttp.ClientSession) -> None:
    """Whoever watches is cut, every server has forgotten every session, says so, and goes on with new ones."""
    talk = FleetConversation(three, http, seed=7)
    session = await talk.clients[0].create()
    watching = [asyncio.create_task(_watched(http, f"{one.address}/api/v1/cloud/sessions/{session}/events/stream"))
                for one in three.servers]
    async with http.post(f"{three.address}/aap/sessions/{session}/turns", json={
        "stream": "delta", "messages": [{"role": "user", "content": "/slow 1000"}]}) as turn:
        await turn.content.readuntil(b"text_delta")
        await asyncio.to_thread(three.redis.stop, kill=True)
        three.redis.lose_everything()
        await asyncio.to_thread(three.redis.start)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*watching)
            with suppress(aiohttp.ClientPayloadError):
                await turn.read()
    for server in three.servers:
        for path in (f"/aap/sessions/{session}", f"/api/v1/cloud/sessions/{session}", f"/replay/{session}"):
            async with http.get(f"{server.address}{path}") as answer:
                assert answer.status == 404, (path, await answer.text())
        async with http.get(f"{server.address}/api/v1/cloud/sessions") as answer:
            assert (await answer.json())["data"] == []
        await server_says(server, "redis_data_lost")
    await talk.begin()
    await talk.until_heard(100)
    assert await talk.verdict() == [], three.errors()


async def _watched(http: aiohttp.ClientSession, url: str) -> None:
    """Until the stream ends, or is torn."""
    async with http.get(url) as answer:
        with suppress(aiohttp.ClientPayloadError):
            await answer.read()
