"""The memories that fit a message reach agents: each kind has a place for them."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from ag_ui.core import RunAgentInput

import gateway.model as m
from gateway.backends.agui.messages import run_input
from gateway.backends.system_text import MEMORIES_HEADING, with_memories
from tests.support.backends.acp_turns import Turn as AcpTurn
from tests.support.backends.acp_turns import backend as acp_backend
from tests.support.backends.function_backends import function_backend
from tests.support.backends.messages_api import message, text
from tests.support.backends.model_services import says, talked, turn_of
from tests.support.backends.turn_driver import FakeTurn, play, tell
from tests.support.gateway_server import serving

TEA = m.MemoryRef(number=7, content="Likes\n tea.", skill="kitchen")


def test_the_system_text_ends_with_the_memories() -> None:
    assert with_memories("Be brief.", ()) == "Be brief."
    assert with_memories(None, ()) is None
    assert with_memories("Be brief.", [TEA]) == f"Be brief.\n\n{MEMORIES_HEADING}\n- Likes tea."
    assert with_memories(None, [TEA]) == f"{MEMORIES_HEADING}\n- Likes tea."


@pytest.mark.parametrize(("service", "answer"), [("openai", says("ok")), ("anthropic", message(text(0, "ok")))])
async def test_a_model_has_them_in_its_system_text(service: str, answer: Any) -> None:
    for memories in ((TEA,), ()):
        turn = turn_of(settings=m.Settings(system="Be brief."))
        turn.memories = memories
        _, server = await talked(service, [answer], turn)
        body = orjson.loads(server.asked[0].body)
        system = body["system"] if service == "anthropic" else body["messages"][0]["content"]
        assert ("- Likes tea." in str(system)) is bool(memories)


async def test_a_function_has_them() -> None:
    async def agent(turn: Any, settings: Any) -> str:
        return f"{settings.system}|{[one.number for one in turn.memories]}"

    def plain(turn: Any) -> str:
        return str(turn.memories[0].content)

    told = await tell("go", backend=function_backend(agent), memories=[TEA])
    assert told.text == f"{MEMORIES_HEADING}\n- Likes tea.|[7]"
    assert (await tell("go", backend=function_backend(agent))).text == "None|[]"
    assert (await tell("go", backend=function_backend(plain), memories=[TEA])).text == "Likes\n tea."


async def test_an_acp_agent_has_them_before_the_message(tmp_path: Path) -> None:
    async with acp_backend(tmp_path) as made:
        turn = AcpTurn(m.SendMessage(content="hi"), memories=[TEA])
        told = json.loads((await play(made, turn)).text)
        assert [block["text"] for block in told] == [f"{MEMORIES_HEADING}\n- Likes tea.", "hi"]


def test_an_ag_ui_agent_has_them_as_context() -> None:
    turn = FakeTurn(m.SendMessage(content="hi", variables={"zone": "UTC"}), memories=[TEA])
    body = run_input(turn, (), turn.settings, thread_id="t", state=None, ids={}, forward={})
    assert body["context"] == [
        {"description": "zone", "value": "UTC"}, {"description": MEMORIES_HEADING, "value": "Likes\n tea."}]
    assert RunAgentInput.model_validate({**body, "state": {}}).context[1].value == "Likes\n tea."


async def test_a_zenflux_server_has_them_among_the_variables(tmp_path: Path) -> None:
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
    (tmp_path / "there" / "echo.py").write_text("def agent(turn):\n    return str(turn.command.variables)\n")
    echo = {"echo": {"backend": "python", "settings": {"agent": "echo:agent"}}}
    async with serving(tmp_path / "there", log="memory", dialects={"zenflux": {}}, agents=echo) as there:
        remote = {"dialect": "zenflux", "url": there.url("/api/v1")}
        agents = {"far": {"backend": "remote", "settings": remote}}
        async with serving(tmp_path / "here", log="memory", dialects={"blade": {}}, agents=agents) as here:
            async def call(path: str, body: object) -> Any:
                async with here.http.post(here.url(f"/api{path}"), json=body) as answer:
                    return await answer.json()

            await call("/memories", {"content": "Likes tea."})
            session = (await call("/sessions", {"intent": "x"}))["session_id"]
            await call(f"/sessions/{session}/chat", {"session_id": session, "message": "Some tea?"})
            async with here.http.get(here.url(f"/api/sessions/{session}/messages")) as answer:
                last = (await answer.json())[-1]
    assert last["blocks"][0]["content"] == "{'memories': ['Likes tea.']}"
    assert [ref["content_preview"] for ref in last["memory_refs"]] == ["Likes tea."]
