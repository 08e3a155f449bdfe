"""The shadow is told the same and compared; whatever it does, the client's turn is as it was without it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from gateway.composition import load_components
from gateway.config import load_config
from gateway.yaml_positions import Problems
from tests.support.gateway_server import Served, serving, until

OWNER = "ann"
BROKEN = """
rules:
  - {when: hang, steps: [{say: Hm}, {hang: true}]}
  - {when: raise, steps: [{say: Hm}, {raise: it broke}]}
turns: [[{say: "Quite another thing."}, {call: {name: clock, input: {}}}, {say: "And then?"}]]
"""


@asynccontextmanager
async def shadowed(folder: Path, **shadow: Any) -> AsyncIterator[Served]:
    (folder / "other.yaml").write_text(BROKEN)
    async with serving(folder, dialects={"aap": {}}, log="memory", shadow={"backend": "demo", **shadow}) as served:
        yield served


async def talk(served: Served, text: str) -> list[Any]:
    """One turn, everything it asks answered; the events of the session."""
    sessions = served.gateway.sessions
    settings = m.Settings(client_tools=(m.ToolSpec(name="paint", parameters={"type": "object"}),))
    view = await sessions.create(OWNER, "demo", settings=settings)
    await sessions.submit(OWNER, view.session_id, [m.SendMessage(content=text)])
    while True:
        await until(lambda: view.status is not m.SessionStatus.RUNNING)
        if view.status is m.SessionStatus.IDLE:
            break
        await sessions.submit(OWNER, view.session_id, [answer(name, ask.ask) for name, ask in view.asks.items()])
    return [record.event for record in await sessions.records(OWNER, view.session_id)]


def answer(request_id: str, ask: Any) -> m.AnyCommand:
    match ask.kind:
        case "question":
            assert isinstance(ask, m.QuestionAsk)
            picks = {str(number): (0,) for number in range(len(ask.questions))}
            return m.AnswerQuestion(request_id=request_id, selections=picks)
        case "permission":
            return m.DecidePermission(request_id=request_id, granted=True)
        case "client_tool":
            return m.ReturnResult(request_id=request_id, content="painted")
        case "continuation":
            return m.ContinueTurn(request_id=request_id)
        case _:
            return m.RollBack(request_id=request_id, option=ask.options[0].get("id"))


async def report(served: Served, turns: int) -> list[dict[str, Any]]:
    path = served.gateway.components.config.data / "shadow.jsonl"
    await until(lambda: path.exists() and path.read_bytes().count(b"\n") >= turns)
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("text", [
    "hello", "/think /tool calc {\"expression\": \"6 * 7\"}", "/parallel", "/ask", "/fork", "/fork-ask", "/permit",
    "/client-tool", "/continue", "/fail", "/refuse", "/annotate /image /plan",
])
async def test_an_agent_is_like_itself(tmp_path: Path, text: str) -> None:
    async with shadowed(tmp_path) as served:
        await talk(served, text)
        (line,) = await report(served, 1)
        assert (line["verdict"], line.get("differences")) == ("same", None)


async def test_another_agent_is_told_apart_and_the_client_hears_only_the_first(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        alone = await talk(served, "hello /think")
    async with shadowed(tmp_path, backend="scripted", settings={"scenario": "other.yaml"}) as served:
        beside = await talk(served, "hello /think")
        (line,) = await report(served, 1)
    assert line["verdict"] == "differs"
    assert any("call clock()" in found["second"] for found in line["differences"])
    assert any("thinking" in found["first"] for found in line["differences"])
    assert [type(event) for event in beside] == [type(event) for event in alone]
    assert "Quite another thing." not in repr(beside)


async def test_a_shadow_that_breaks_or_hangs_harms_nobody(tmp_path: Path) -> None:
    other = {"backend": "scripted", "settings": {"scenario": "other.yaml"}, "seconds": 0.5}
    async with shadowed(tmp_path, **other) as served:
        for word in ("raise", "hang"):
            await talk(served, word)
        broken, hanging = sorted(await report(served, 2), key=lambda line: line["verdict"])
    assert (broken["verdict"], broken["differences"][-1]["second"][-1]) == ("differs", "failed: RuntimeError")
    assert hanging["verdict"] == "failed" and "0.5 seconds" in hanging["reason"]


async def test_an_interrupted_turn_is_not_compared_and_its_shadow_ends(tmp_path: Path) -> None:
    async with shadowed(tmp_path) as served:
        sessions = served.gateway.sessions
        view = await sessions.create(OWNER, "demo")
        await sessions.submit(OWNER, view.session_id, [m.SendMessage(content="/slow 1000")])
        await until(lambda: view.head > 6)
        await sessions.submit(OWNER, view.session_id, [m.Interrupt()])
        await until(lambda: not [task for task in asyncio.all_tasks() if task.get_name().startswith("shadow of")])
        await talk(served, "hello")
        assert [line["verdict"] for line in await report(served, 1)] == ["same"]


async def test_only_a_share_and_only_some_agents_are_copied(tmp_path: Path) -> None:
    agents = {"demo": {"backend": "demo"}, "spare": {"backend": "demo"}}
    async with serving(tmp_path, agents=agents, shadow={"backend": "demo", "agents": ["spare"]}) as served:
        await talk(served, "hello")
        assert not (served.gateway.components.config.data / "shadow.jsonl").exists()
    async with shadowed(tmp_path, share=0.0) as served:
        await talk(served, "hello")
        assert not (served.gateway.components.config.data / "shadow.jsonl").exists()


def test_mistakes_are_told_with_their_places(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("dialects: {aap: }\nagents: {demo: {backend: demo}}\n"
                    "shadow:\n  backend: dmeo\n  agents: [demo, dem]\n")
    with pytest.raises(Problems) as caught:
        load_components(load_config(file))
    told = "\n".join(map(str, caught.value.problems))
    assert "config.yaml:4" in told and "there is no backend 'dmeo'; did you mean 'demo'?" in told
    assert "config.yaml:5" in told and "there is no agent 'dem'" in told and "demo" in told
