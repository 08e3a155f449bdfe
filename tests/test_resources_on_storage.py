"""The resources that dialects share survive a restart, and are the same on every server of a fleet."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from gateway.ports import SharedKind
from tests.support.cluster.fleet_in_loop import FleetInLoop, fleet_in_loop
from tests.support.dialect_tables import DIALECTS
from tests.support.dialects.cas.shared_resources import begin
from tests.support.gateway_server import serving
from tests.support.shared_resources import VALUES, Caller, all_hands

HANDS = all_hands()
CAS, BLADE, ZENFLUX = "/api/v1/cloud", "/api", "/api/v1"


async def test_what_is_made_survives_a_restart(tmp_path: Path) -> None:
    names: dict[tuple[SharedKind, str], str] = {}
    settings = {"dialects": {name: {} for name in DIALECTS}}
    async with serving(tmp_path, log="sqlite", **settings) as served:
        caller = Caller(served.http, served.address)
        for kind, by_dialect in HANDS.items():
            for maker, hands in by_dialect.items():
                if hands.make is not None:
                    names[kind, maker] = name = await hands.make(caller, VALUES[kind][0])
                    if hands.change is not None:
                        await hands.change(caller, name, VALUES[kind][1])
    async with serving(tmp_path, log="sqlite", **settings) as served:
        caller = Caller(served.http, served.address)
        for (kind, maker), name in names.items():
            value = VALUES[kind][HANDS[kind][maker].change is not None]
            for other, hands in HANDS[kind].items():
                assert await hands.see(caller, name) == value, (kind, maker, other)


# -- three servers on one Redis ---------------------------------------------------------------------------------------

async def say(caller: Caller, session_id: str, text: str = "hello") -> str:
    """What the agent of a session replies."""
    said = await caller.call("POST", f"{BLADE}/sessions/{session_id}/chat", {"message": text})
    return str(said["result"]["output"])


async def use_agent(caller: Caller, name: str) -> None:
    session = await begin(caller, name)
    assert await say(caller, session) == "You said: hello"
    assert (await caller.call("GET", f"{CAS}/sessions/{session}"))["agent"]["name"] == VALUES[SharedKind.AGENT][1]


async def use_tool(caller: Caller, name: str) -> None:
    session = await begin(caller, name)
    await say(caller, session, "/tool clock")
    turns = await caller.call("GET", f"{BLADE}/sessions/{session}/messages")
    assert [call["tool_name"] for turn in turns for call in turn["tool_calls"]] == ["clock"]


async def use_server(caller: Caller, name: str) -> None:
    session = await begin(caller, name.partition("/")[0])
    assert await say(caller, session) == "You said: hello"
    [server] = (await caller.call("GET", f"{CAS}/sessions/{session}"))["agent"]["mcp_servers"]
    assert server["url"] == VALUES[SharedKind.MCP_SERVER][1]


async def use_skill(caller: Caller, name: str) -> None:
    session = await begin(caller, {"id": "agent_demo", "skills": [{"type": "custom", "skill_id": name}]})
    assert await say(caller, session) == "You said: hello"
    [skill] = await caller.call("GET", f"{BLADE}/sessions/{session}/skills")
    assert (skill["name"], skill["description"]) == (name, VALUES[SharedKind.SKILL][1])


async def use_schedule(caller: Caller, name: str) -> None:
    run = await caller.call("POST", f"{ZENFLUX}/tasks/{name}/run", {"wait": True})
    assert run["status"] == "completed", run
    turns = await caller.call("GET", f"{BLADE}/sessions/{run['result']['conversation_id']}/messages")
    assert turns[-1]["blocks"][-1]["content"] == "You said: hello"


async def use_settings(caller: Caller, name: str) -> None:
    assert await say(caller, await begin(caller)) == f"{VALUES[SharedKind.SETTINGS][1]} hello"


async def use_file(caller: Caller, name: str) -> None:
    session = await begin(caller)
    await caller.call("POST", f"{CAS}/sessions/{session}/resources", {"type": "file", "file_id": name}, status=201)
    assert await say(caller, session) == "You said: hello"
    [mount] = (await caller.call("GET", f"{CAS}/sessions/{session}"))["resources"]
    assert mount["file_id"] == name


USES: dict[SharedKind, Callable[[Caller, str], Awaitable[None]]] = {
    SharedKind.AGENT: use_agent, SharedKind.TOOL: use_tool, SharedKind.MCP_SERVER: use_server,
    SharedKind.SKILL: use_skill, SharedKind.SCHEDULE: use_schedule, SharedKind.SETTINGS: use_settings,
    SharedKind.FILE: use_file,
}
MADE = [
    pytest.param(kind, maker, id=f"{kind.name.lower()}-{maker}")
    for kind, by_dialect in HANDS.items() for maker, hands in by_dialect.items() if hands.make is not None
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def three(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FleetInLoop]:
    async with fleet_in_loop(tmp_path_factory.mktemp("fleet"), 3) as made:
        yield made


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("kind", "maker"), MADE)
async def test_a_resource_is_the_same_on_three_servers(three: FleetInLoop, kind: SharedKind, maker: str) -> None:
    """Made on one server, seen and changed on another, used and deleted on the third, it is gone on the first."""
    by_dialect, (first, second) = HANDS[kind], VALUES[kind]
    making = by_dialect[maker]
    deleting = next(hands for hands in (*by_dialect.values(), making) if hands.delete is not None)
    assert making.make is not None
    assert deleting.delete is not None
    async with aiohttp.ClientSession() as http:
        one, two, last = (Caller(http, server.address) for server in three.servers)
        name = await making.make(one, first)
        for dialect, hands in by_dialect.items():
            assert await hands.see(two, name) == first, dialect
        changing = next((hands for hands in reversed(by_dialect.values()) if hands.change is not None), None)
        if changing is not None and changing.change is not None:
            await changing.change(two, name, second)
        await USES[kind](last, name)
        await deleting.delete(last, name)
        for dialect, hands in by_dialect.items():
            assert await hands.see(one, name) is None, dialect
