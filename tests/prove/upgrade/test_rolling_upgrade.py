"""Three servers on one Redis are replaced one by one, while clients of all dialects talk: forwards, and back."""

import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.prove.crash.killable_server import KillableProcess
from tests.prove.fleet.gateways import Fleet, FleetConversation, calling, fleet

CAS = "/api/v1/cloud/sessions"
HEARD = 100
"""How many things clients hear of servers of both releases, before the next server is replaced."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("direction", ["forwards", "back"])
async def test_servers_are_replaced_one_by_one_under_load(tmp_path: Path, previous: Path, direction: str) -> None:
    first, then = (previous, None) if direction == "forwards" else (None, previous)
    async with fleet(tmp_path, packages=first) as three, calling() as http:
        waiting = await ask_for_permission(three, http)
        talk = FleetConversation(three, http, seed=8)
        await talk.begin()
        for number, server in enumerate(three.servers):
            await talk.until_heard(HEARD)
            await server.end(signal.SIGTERM)
            server.packages = then
            await three.back(number)
            await talk.until_heard(HEARD)
        assert await talk.verdict() == [], three.errors()
        assert await permit(three, http, waiting) == "end_turn"


@pytest.mark.timeout(900)
async def test_a_filter_by_time_knows_what_servers_of_both_releases_do(tmp_path: Path, previous: Path) -> None:
    """As many sessions are created as are removed by the previous release, which stores no times."""
    async with fleet(tmp_path, 2, packages=previous) as two, calling() as http:
        old, new = two.servers
        first = [await create(http, old) for _ in range(3)]
        await new.end(signal.SIGTERM)
        new.packages = None
        await two.back(1)
        assert await created_since(http, new) == set(first)
        async with http.delete(f"{old.address}{CAS}/{first[0]}") as answer:
            assert answer.status < 300, await answer.text()
        later = [await create(http, server) for server in (old, new)]
        assert await created_since(http, new) == {*first[1:], *later}


async def create(http: aiohttp.ClientSession, server: KillableProcess) -> str:
    made = await _posted(http, f"{server.address}/aap/sessions", {"agent": {"name": "demo"}})
    return str(made["sessionId"])


async def created_since(http: aiohttp.ClientSession, server: KillableProcess) -> set[str]:
    """The sessions that a list with a filter by time has."""
    query = {"created_at[gte]": "2020-01-01T00:00:00Z", "limit": "100"}
    async with http.get(f"{server.address}{CAS}", params=query) as answer:
        assert answer.status == 200, await answer.text()
        return {one["id"] for one in (await answer.json())["data"]}


async def ask_for_permission(fleet: Fleet, http: aiohttp.ClientSession) -> str:
    """Return a session whose turn waits for people."""
    tools = [{"name": "clock", "trust": True}, {"name": "calc"}]
    made = await _posted(http, f"{fleet.address}/aap/sessions", {"agent": {"name": "demo", "tools": tools}})
    session = str(made["sessionId"])
    turn = await _posted(http, f"{fleet.address}/aap/sessions/{session}/turns", {
        "stream": "none", "messages": [{"role": "user", "content": "/permit"}]})
    assert turn["stopReason"] == "tool_use"
    return session


async def permit(fleet: Fleet, http: aiohttp.ClientSession, session: str) -> str:
    """Give permission in another dialect; return what the turn ends with."""
    there = f"{fleet.address}{CAS}/{session}/events"
    async with http.get(f"{there}?limit=100") as answer:
        [wanted] = (await answer.json())["data"][-1]["stop_reason"]["event_ids"]
    await _posted(http, there, {
        "events": [{"type": "user.tool_confirmation", "tool_use_id": wanted, "result": "allow"}]})
    async with http.get(f"{there}/stream?stream_start=replay") as stream:
        async for line in stream.content:
            if b'"end_turn"' in line:
                return "end_turn"
    return "the stream ended"


async def _posted(http: aiohttp.ClientSession, url: str, body: Any) -> Any:
    async with http.post(url, json=body) as answer:
        assert answer.status < 300, await answer.text()
        return await answer.json()
