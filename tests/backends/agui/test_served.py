"""An AG-UI agent behind a real gateway: tools and permissions over two dialects, restarts, and the example."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from ag_ui.core import Interrupt, RunFinishedInterruptOutcome
from aiohttp import web

from tests.support.backends import agui_server as driving
from tests.support.backends.agui_server import END, START, Server, call, text
from tests.support.dialects.aap.client import MINE
from tests.support.dialects.aap.client import Client as Aap
from tests.support.dialects.cas.client import MINE as CUSTOM
from tests.support.dialects.cas.client import Client as Cas
from tests.support.dialects.cas.client import confirm, result, types
from tests.support.gateway_server import Served, serving

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "agui"
ROME = '{"city": "Rome"}'


@pytest.fixture
async def agent() -> AsyncIterator[Server]:
    async with driving.server() as made:
        yield made


@asynccontextmanager
async def served(folder: Path, agent: Server) -> AsyncIterator[Served]:
    settings = {"backend": "agui", "model": "demo-1", "settings": {"url": agent.url}}
    async with serving(folder, log="sqlite", agents={"demo": settings}) as made:
        yield made


def interrupted(call_id: str) -> Any:
    waits = Interrupt(id="i1", reason="tool_call", tool_call_id=call_id, message="Pay?")
    return END.model_copy(update={"outcome": RunFinishedInterruptOutcome(interrupts=[waits])})


async def test_a_clients_tool_over_aap(tmp_path: Path, agent: Server) -> None:
    agent.play([START, *text("Wait. "), *call("c1", "mine", ROME), END], [START, *text("Sunny.", "m2"), END],
               [START, *text("Yes.", "m3"), END])
    async with served(tmp_path, agent) as made:
        aap = Aap(made)
        session = await aap.session(tools=[MINE])
        heard = await aap.turn(session, "weather?")
        assert (heard.text, heard.stop, heard.calls) == ("Wait. ", "tool_use", [("c1", "mine", {"city": "Rome"})])
        heard = await aap.turn(session, {"role": "tool", "toolCallId": "c1", "content": "sun"})
        assert (heard.text, heard.stop) == ("Sunny.", "end_turn")
        assert (await aap.turn(session, "sure?")).text == "Yes."
    first, second, third = agent.asked
    assert first.thread_id == second.thread_id == third.thread_id == session
    assert [message.role for message in second.messages] == ["user", "assistant", "tool"]
    assert [message.id for message in third.messages if message.role == "assistant"] == ["m1", "m2"]


async def test_a_clients_tool_over_cas(tmp_path: Path, agent: Server) -> None:
    agent.play([START, *call("c1", "mine", ROME), END], [START, *text("Sunny.", "m2"), END])
    async with served(tmp_path, agent) as made:
        cas = Cas(made)
        session = await cas.session(CUSTOM)
        [asked] = [event for event in await cas.turn(session, "weather?") if event["type"] == "agent.custom_tool_use"]
        assert asked["input"] == {"city": "Rome"}
        told = await cas.turn(session, result(asked["id"], "sun"))
        assert [event["content"][0]["text"] for event in told if event["type"] == "agent.message"] == ["Sunny."]
        assert (await cas.ok("GET", f"/sessions/{session}"))["metadata"] == {}
    assert agent.asked[1].messages[-1].content == "sun"


@pytest.mark.parametrize("granted", [True, False])
async def test_permission_over_aap(tmp_path: Path, agent: Server, granted: bool) -> None:
    back = [driving.result("c1", "paid")] if granted else []
    agent.play([START, *call("c1", "pay", "{}"), interrupted("c1")], [START, *back, *text("Well.", "m2"), END])
    async with served(tmp_path, agent) as made:
        aap = Aap(made)
        session = await aap.session()
        assert (await aap.turn(session, "pay")).stop == "tool_use"
        heard = await aap.turn(session, {"role": "tool_permission", "toolCallId": "c1", "granted": granted})
        assert (heard.text, heard.stop) == ("Well.", "end_turn")
    assert [one.payload for one in agent.asked[1].resume or ()] == [{"approved": granted}]


@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_permission_over_cas(tmp_path: Path, agent: Server, decision: str) -> None:
    agent.play([START, *call("c1", "pay", "{}"), interrupted("c1")], [START, driving.result("c1", "so be it"), END])
    async with served(tmp_path, agent) as made:
        cas = Cas(made)
        session = await cas.session()
        [asked] = [event for event in await cas.turn(session, "pay") if event["type"] == "agent.tool_use"]
        assert "agent.tool_result" in types(await cas.turn(session, confirm(asked["id"], decision)))
    assert [one.payload for one in agent.asked[1].resume or ()] == [{"approved": decision == "allow"}]


async def test_a_turn_that_waits_goes_on_after_a_restart(tmp_path: Path, agent: Server) -> None:
    agent.play([START, *call("c1", "mine", ROME), *call("c2", "pay", "{}"), interrupted("c2")])
    async with served(tmp_path, agent) as made:
        aap = Aap(made)
        session = await aap.session(tools=[MINE])
        assert (await aap.turn(session, "weather?")).stop == "tool_use"
        await made.gateway.sessions.drain(0, asyncio.Event())
    agent.play([START, driving.result("c2", "paid"), *text("Sunny.", "m2"), END])
    async with served(tmp_path, agent) as made:
        heard = await Aap(made).turn(
            session, {"role": "tool", "toolCallId": "c1", "content": "sun"},
            {"role": "tool_permission", "toolCallId": "c2", "granted": True},
        )
        assert (heard.text, heard.stop) == ("Sunny.", "end_turn")
    assert [one.payload for one in agent.asked[1].resume or ()] == [{"approved": True}]
    assert [message.role for message in agent.asked[1].messages] == ["user", "assistant", "tool"]


# -- the example -------------------------------------------------------------------------------------------------------

@asynccontextmanager
async def example() -> AsyncIterator[int]:
    """The server of the example, on a free port."""
    spec = importlib.util.spec_from_file_location("agui_example", EXAMPLE / "server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    runner = web.AppRunner(module.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_the_example_is_served(tmp_path: Path) -> None:
    settings = yaml.safe_load((EXAMPLE / "config.yaml").read_text())
    del settings["port"]
    weather = {"name": "weather", "description": "The weather.", "parameters": {"type": "object"}}
    async with example() as port:
        settings["agents"]["counter"]["settings"]["url"] = f"http://127.0.0.1:{port}/agent"
        async with serving(tmp_path, log="sqlite", **settings) as made:
            aap = Aap(made)
            session = await aap.session(agent={"name": "counter"}, tools=[weather])
            assert (await aap.turn(session, "hello")).text == "That was number 1: hello "
            assert (await aap.turn(session, "again")).text == "That was number 2: again "
            [(call_id, name, given)] = (await aap.turn(session, "weather?")).calls
            assert (name, given) == ("weather", {"city": "Rome"})
            heard = await aap.turn(session, {"role": "tool", "toolCallId": call_id, "content": "fine"})
            assert heard.text == "The weather is fine. "


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "backends.md").read_text()
    section = page.partition("\n## `agui`\n")[2].partition("\n## ")[0]
    shown = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])
    assert shown["agents"] == yaml.safe_load((EXAMPLE / "config.yaml").read_text())["agents"]
