"""JSON that is only carried comes back as it came, or is refused by name: from clients, agents and other servers."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.config import load_config
from gateway.yaml_positions import Problems
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving

CLOUD = "/api/v1/cloud"
ALL: dict[str, Any] = {name: {} for name in DIALECTS}
BIG = 123456789012345678901234567890
NESTED: Any = 1
for _ in range(140):
    NESTED = [NESTED]
CARRIED = {"least": -(2 ** 63), "most": 2 ** 64 - 1, "half": 0.5, "large": 1e300, "none": None, "deep": NESTED}

@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects=ALL) as served:
        yield served


async def call(served: Served, method: str, path: str, body: Any = None) -> Any:
    content = None if body is None else orjson.dumps(body)
    async with served.http.request(method, served.url(path), data=content) as response:
        text = await response.read()
        assert response.status < 300, text
        return orjson.loads(text) if response.content_type == "application/json" else text


async def test_an_outcome_comes_back_with_all_its_fields(served: Served) -> None:
    made = await call(served, "POST", f"{CLOUD}/sessions", {"agent": "agent_demo", "environment_id": "env_default"})
    outcome = {"description": "d", "session_thread_id": "sthr_mine", "rubric": CARRIED}
    await call(served, "POST", f"{CLOUD}/sessions/{made['id']}/events",
               {"events": [{"type": "user.define_outcome", **outcome}]})
    [event] = (await call(served, "GET", f"{CLOUD}/sessions/{made['id']}/events"))["data"]
    assert {name: event[name] for name in outcome} == outcome


async def test_the_input_of_a_call_and_the_schema_of_a_tool_come_back(served: Served) -> None:
    schema = {"type": "object", "x": CARRIED}
    history = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [
        {"type": "tool_use", "toolCallId": "c", "name": "look", "input": CARRIED}]},
        {"role": "tool", "toolCallId": "c", "content": "done"}]
    made = await call(served, "POST", "/aap/sessions", {
        "agent": {"name": "demo"}, "messages": history,
        "tools": [{"name": "mine", "description": "d", "parameters": schema}],
    })
    told = await call(served, "GET", f"/aap/sessions/{made['sessionId']}/history?type=full")
    [use] = [block for message in told["history"]["full"] if isinstance(message["content"], list)
             for block in message["content"] if block["type"] == "tool_use"]
    assert use["input"] == CARRIED
    session = await call(served, "GET", f"/aap/sessions/{made['sessionId']}")
    assert session["tools"][0]["parameters"] == schema


NAMED = f"call.input.where.1: {BIG} does not fit into 64 bits; write it as a string"
SCENARIO = f"""
turns:
  - - call: {{name: look, input: {{where: [1, {BIG}]}}}}
    - say: never said
"""
FRAMES = f"""event: turn_start
data: {{}}

event: tool_call
data: {{"toolCallId":"c","name":"look","input":{{"where":[1,{BIG}]}}}}

event: tool_result
data: {{"toolCallId":"c","content":"x"}}

event: text
data: {{"text":"never said"}}

event: turn_stop
data: {{"stopReason":"end_turn"}}

"""


async def failed(served: Served, agent: str) -> str:
    """Why a turn failed, as it is told to a client that reads it later; all dialects can read it."""
    session = (await call(served, "POST", "/aap/sessions", {"agent": {"name": agent}}))["sessionId"]
    told = await call(served, "POST", f"/aap/sessions/{session}/turns",
                      {"stream": "delta", "messages": [{"role": "user", "content": "go"}]})
    assert told.endswith(b'event: turn_stop\ndata: {"stopReason":"error"}\n\n')
    for path in (f"/api/sessions/{session}/messages", f"/api/v1/conversations/{session}/messages"):
        assert b"never said" not in orjson.dumps(await call(served, "GET", path))
    events = (await call(served, "GET", f"{CLOUD}/sessions/{session}/events"))["data"]
    return str(next(event["error"]["message"] for event in events if event["type"] == "session.error"))


async def test_an_integer_of_an_agent_that_is_too_large_fails_its_turn_by_name(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    agents = {"odd": {"backend": "scripted", "settings": {"scenario": "scenario.yaml"}}}
    async with serving(tmp_path, dialects=ALL, agents=agents) as served:
        assert NAMED in await failed(served, "odd")


async def test_an_integer_of_another_server_that_is_too_large_fails_its_turn_by_name(tmp_path: Path) -> None:
    async def meta(_: web.Request) -> web.Response:
        return web.json_response({"version": 3, "agents": [{"name": "far", "capabilities": {"stream": {"delta": {}}}}]})

    async def create(_: web.Request) -> web.Response:
        return web.json_response({"sessionId": "s1"}, status=201)

    async def turn(_: web.Request) -> web.Response:
        return web.Response(text=FRAMES, content_type="text/event-stream")

    app = web.Application()
    app.add_routes([
        web.get("/meta", meta), web.post("/sessions", create), web.post("/sessions/s1/turns", turn),
    ])
    async with TestServer(app) as upstream:
        agents = {"far": {"backend": "remote", "settings": {"dialect": "aap", "url": str(upstream.make_url("/"))}}}
        async with serving(tmp_path, dialects=ALL, agents=agents) as served:
            assert NAMED in await failed(served, "far")


async def test_settings_with_an_integer_that_is_too_large_are_refused_at_their_line(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"""dialects: {{aap: }}
agents:
  demo:
    backend: demo
    tools: [{{name: t, parameters: {{maximum: {BIG}}}}}]
""")
    with pytest.raises(Problems) as found:
        load_config(file)
    told = f"agents.demo.tools.0.parameters.maximum: {BIG} does not fit into 64 bits; write it as a string"
    assert str(found.value) == f"{file}:5:45: {told}"
