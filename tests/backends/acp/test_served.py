"""An ACP agent behind a real gateway: permission over two dialects, interrupts, restarts, and the example."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.support.backends.acp_turns import AGENT, call, printed, progress, text
from tests.support.dialects.aap.client import Client as Aap
from tests.support.dialects.cas.client import Client as Cas
from tests.support.dialects.cas.client import confirm, types
from tests.support.gateway_server import Served, serving
from tests.support.server_process import Running, running

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "acp"
LOOK = {"toolCallId": "c1", "title": "List files", "kind": "execute", "rawInput": {"command": "ls"}}
DONE = progress("c1", status="completed", content=printed("a.txt"))


@asynccontextmanager
async def served(folder: Path, *flags: str) -> AsyncIterator[Served]:
    settings = {"command": sys.executable, "args": ["-I", "-S", str(AGENT), *flags], "root": "work"}
    async with serving(folder, log="sqlite", agents={"demo": {"backend": "acp", "settings": settings}}) as made:
        yield made


def steps(*given: Any) -> str:
    return json.dumps(given)


@pytest.mark.parametrize(("granted", "option"), [(True, "yes"), (False, "no")])
async def test_permission_over_aap(tmp_path: Path, granted: bool, option: str) -> None:
    async with served(tmp_path) as made:
        aap = Aap(made)
        session = await aap.session()
        heard = await aap.turn(session, steps(text("Shall I? "), ["permission", LOOK], DONE, text("Done.")))
        assert (heard.text, heard.stop) == ("Shall I? ", "tool_use")
        [(call_id, name, given)] = heard.calls
        assert (name, given) == ("execute", {"command": "ls"})
        heard = await aap.turn(session, {"role": "tool_permission", "toolCallId": call_id, "granted": granted})
        assert heard.stop == "end_turn"
        assert heard.text == f'{{"outcome": "selected", "optionId": "{option}"}}Done.'
        assert [one for one, _ in heard.results] == [call_id]
        again = await aap.turn(session, steps(text("Still here.")))
        assert again.text == "Still here."


@pytest.mark.parametrize(("decision", "option"), [("allow", "yes"), ("deny", "no")])
async def test_permission_over_cas(tmp_path: Path, decision: str, option: str) -> None:
    async with served(tmp_path) as made:
        cas = Cas(made)
        session = await cas.session()
        told = await cas.turn(session, steps(["permission", LOOK], DONE))
        [asked] = [event for event in told if event["type"] == "agent.tool_use"]
        assert (asked["name"], asked["input"]) == ("execute", {"command": "ls"})
        assert asked["evaluated_permission"] == "ask"
        told = await cas.turn(session, confirm(asked["id"], decision))
        assert "agent.tool_result" in types(told)
        said = [event["content"][0]["text"] for event in told if event["type"] == "agent.message"]
        assert [json.loads(one)["optionId"] for one in said] == [option]


async def test_the_sessions_of_the_agent_are_nobodys_business(tmp_path: Path) -> None:
    async with served(tmp_path) as made:
        cas = Cas(made)
        session = await cas.session(metadata={"colour": "red"})
        await cas.turn(session, steps(text("hello")))
        told = await cas.ok("GET", f"/sessions/{session}")
        assert told["metadata"] == {"colour": "red"}


async def test_an_interrupt_reaches_the_agent(tmp_path: Path) -> None:
    async with served(tmp_path) as made:
        cas = Cas(made)
        session = await cas.session()
        async with cas.listening(session) as stream:
            await cas.sent(session, steps(call("c1", status="in_progress", rawInput={"path": "x"}), ["hang"]))
            await stream.until("agent.tool_use")
            await cas.sent(session, {"type": "user.interrupt"})
            await stream.until("session.status_idle")
        told = await cas.turn(session, steps(["pid"], text(" lives")))
        [said] = [event["content"][0]["text"] for event in told if event["type"] == "agent.message"]
        assert said.endswith(" lives")


async def test_an_agent_that_dies_fails_the_turn_and_is_back_for_the_next(tmp_path: Path) -> None:
    async with served(tmp_path, "--load") as made:
        aap = Aap(made)
        session = await aap.session()
        heard = await aap.turn(session, steps(text("I am "), ["die", 3, "out of ink"]))
        assert (heard.text, heard.stop) == ("I am ", "error")
        view = await made.gateway.sessions.get("", session)
        assert view.ended is not None
        assert view.ended.fault is not None
        assert view.ended.fault.message == "the agent ended unexpectedly (exit code 3): out of ink"
        assert (await aap.turn(session, steps(text("Back.")))).text == "Back."


async def test_a_permission_that_is_given_after_a_restart_comes_too_late(tmp_path: Path) -> None:
    async with served(tmp_path) as made:
        aap = Aap(made)
        session = await aap.session()
        [(call_id, _, _)] = (await aap.turn(session, steps(["permission", LOOK]))).calls
        await made.gateway.sessions.drain(0, asyncio.Event())
    async with served(tmp_path) as made:
        aap = Aap(made)
        heard = await aap.turn(session, {"role": "tool_permission", "toolCallId": call_id, "granted": True})
        assert heard.stop == "error"
        view = await made.gateway.sessions.get("", session)
        assert view.ended is not None
        assert view.ended.fault is not None
        assert view.ended.fault.code == "interrupted"
        assert (await aap.turn(session, steps(text("Go on.")))).text == "Go on."


# -- the example -------------------------------------------------------------------------------------------------------

@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    shutil.copy(EXAMPLE / "agent.py", tmp_path)
    settings = yaml.safe_load((EXAMPLE / "config.yaml").read_text())
    with running(tmp_path, **{**settings, "port": 0, "data": str(tmp_path / "data")}) as made:
        yield made
        assert made.end() == 0
        assert not [one for one in processes() if str(tmp_path) in one]


def processes() -> list[str]:
    """Where each process of this machine works."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cwd"):
        try:
            found.append(str(one.readlink()))
        except OSError:
            continue
    return found


async def test_the_example_is_served(example: Running, tmp_path: Path) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=50)) as http:
        aap = Aap(Served(None, example.address, http))  # type: ignore[arg-type]
        session = await aap.session(agent={"name": "clerk"})
        heard = await aap.turn(session, "hello there")
        assert heard.text == "I heard: hello there "
        heard = await aap.turn(session, "note buy milk")
        assert heard.thinking
        [(call_id, name, _)] = heard.calls
        assert name == "edit"
        heard = await aap.turn(session, {"role": "tool_permission", "toolCallId": call_id, "granted": True})
        assert heard.text == "It is written. "
        assert (tmp_path / "data" / "work" / session / "notes.txt").read_text() == "buy milk"
        assert (await aap.turn(session, "read")).text == "The notes say: buy milk "
        [(call_id, _, _)] = (await aap.turn(session, "note buy gin")).calls
        heard = await aap.turn(session, {"role": "tool_permission", "toolCallId": call_id, "granted": False})
        assert heard.text == "Then I shall forget it. "
        assert any(str(tmp_path) in one for one in processes())


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs" / "backends.md").read_text()
    section = page.partition("\n## `acp`\n")[2].partition("\n## ")[0]
    shown = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])
    assert shown["agents"] == yaml.safe_load((EXAMPLE / "config.yaml").read_text())["agents"]
