"""A gateway with the `openai` backend between a fake service and clients of two dialects; and a stop in the middle."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from tests.support.backends.model_services import KEY, call, chat, chunk, says
from tests.support.client.byte_server import Answer, Server, head, serving
from tests.support.client.byte_server import chunk as packet
from tests.support.client.byte_server import says as answers_with
from tests.support.dialects.aap.reader import TurnText, read
from tests.support.engine.engine_fixture import lawful
from tests.support.gateway_server import Served, until
from tests.support.gateway_server import serving as gateway

WEATHER = {"name": "weather", "description": "The weather here.", "parameters": {"type": "object"}}
BOTH: Answer = chat(
    chunk({"reasoning_content": "Both."}), chunk({"content": "One moment."}),
    chunk(call(0, "call_1", "calc", '{"expression": "6*7"}')), chunk(call(1, "call_2", "weather", "{}")),
    chunk(finish="tool_calls"),
)


def agents(server: Server, **settings: Any) -> dict[str, Any]:
    return {"llm": {"backend": "openai", "settings": {
        "url": f"{server.url}/v1", "key": KEY, "model": "m", "attempts": 1, "tools": {"calc": "ask"}, **settings,
    }}}


async def post(served: Served, path: str, body: Any) -> Any:
    async with served.http.post(served.url(path), json=body) as response:
        text = await response.text()
        assert response.status < 300, (response.status, text)
        assert KEY not in text
        return orjson.loads(text)


async def session(served: Served) -> str:
    made = await post(served, "/aap/sessions", {
        "agent": {"name": "llm", "tools": [{"name": "calc"}]}, "tools": [WEATHER],
    })
    return str(made["sessionId"])


async def turn(served: Served, session_id: str, *messages: dict[str, Any]) -> TurnText:
    return read(await post(served, f"/aap/sessions/{session_id}/turns", {"messages": [*messages], "stream": "none"}))


async def records(served: Served, session_id: str) -> list[Any]:
    found = list(await served.gateway.sessions.records("", session_id))
    lawful(found)
    return found


async def test_asked_over_one_dialect_and_answered_over_two(tmp_path: Path) -> None:
    async with serving(BOTH, says("42, and sunny.")) as server, gateway(tmp_path, agents=agents(server)) as served:
        one = await session(served)
        heard = await turn(served, one, {"role": "user", "content": "What is 6*7, and the weather?"})
        assert (heard.stop, heard.text, heard.thinking) == ("tool_use", "One moment.", "Both.")
        assert [name for _, name, _ in heard.calls] == ["calc", "weather"]
        await post(served, f"/api/v1/cloud/sessions/{one}/events", {"events": [
            {"type": "user.custom_tool_result", "custom_tool_use_id": await event_of(served, one, "weather"),
             "content": [{"type": "text", "text": "sunny"}]},
        ]})
        heard = await turn(served, one, {"role": "tool_permission", "toolCallId": "call_1", "granted": True})
        assert (heard.stop, heard.text) == ("end_turn", "42, and sunny.")
        await records(served, one)
    last = server.asked[1].json["messages"]
    assert [message["role"] for message in last] == ["user", "assistant", "tool", "tool"]
    assert [message["content"] for message in last[2:]] == ["42", "sunny"]


async def event_of(served: Served, session_id: str, tool: str) -> str:
    """The id by which the other dialect knows a call."""
    async with served.http.get(served.url(f"/api/v1/cloud/sessions/{session_id}/events")) as response:
        listed = await response.json()
    [found] = [event["id"] for event in listed["data"] if event.get("name") == tool]
    return str(found)


@pytest.mark.parametrize("granted", [True, False])
async def test_a_turn_that_waits_goes_on_after_the_server_was_stopped(tmp_path: Path, granted: bool) -> None:
    async with serving(BOTH, says("42, and sunny."), says("Yes.")) as server:
        async with gateway(tmp_path, log="sqlite", agents=agents(server)) as served:
            one = await session(served)
            assert (await turn(served, one, {"role": "user", "content": "Both?"})).stop == "tool_use"
        async with gateway(tmp_path, log="sqlite", agents=agents(server)) as served:
            heard = await turn(
                served, one, {"role": "tool_permission", "toolCallId": "call_1", "granted": granted},
                {"role": "tool", "toolCallId": "call_2", "content": "sunny"},
            )
            assert (heard.stop, heard.text) == ("end_turn", "42, and sunny.")
            assert (await turn(served, one, {"role": "user", "content": "Sure?"})).text == "Yes."
            told = await records(served, one)
    assert len(server.asked) == 3
    messages = server.asked[1].json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
    assert [message["content"] for message in messages[2:]] == ["42" if granted else "Error: Tool call denied", "sunny"]
    ids = [record.event.message_id for record in told if record.event.name == "message.started"]
    assert len(set(ids)) == len(ids) == 3, "what is said after the return has ids of its own"


async def test_a_turn_can_wait_twice_across_two_stops(tmp_path: Path) -> None:
    again = chat(chunk(call(0, "call_1", "calc", '{"expression": "1+1"}')), chunk(finish="tool_calls"))
    async with serving(BOTH, again, says("Done.")) as server:
        async with gateway(tmp_path, log="sqlite", agents=agents(server)) as served:
            one = await session(served)
            await turn(served, one, {"role": "user", "content": "Both?"})
        async with gateway(tmp_path, log="sqlite", agents=agents(server)) as served:
            heard = await turn(
                served, one, {"role": "tool", "toolCallId": "call_2", "content": "sunny"},
                {"role": "tool_permission", "toolCallId": "call_1", "granted": True},
            )
            assert heard.stop == "tool_use"
            [(waiting, _, _)] = heard.calls
            assert waiting != "call_1", "the id was used before"
        async with gateway(tmp_path, log="sqlite", agents=agents(server, max_steps=3)) as served:
            heard = await turn(served, one, {"role": "tool_permission", "toolCallId": waiting, "granted": True})
            assert (heard.stop, heard.text) == ("end_turn", "Done.")
            told = await records(served, one)
    blocks = [record.event.block_id for record in told if record.event.name == "block.started"]
    assert len(set(blocks)) == len(blocks)
    assert [message.get("content") for message in server.asked[2].json["messages"] if message["role"] == "tool"] == [
        "42", "sunny", "2"]


def written(folder: Path) -> list[bytes]:
    """All that the log has kept."""
    found = [file.read_bytes() for file in folder.rglob("dragoman.db*")]
    assert any(found)
    return found


async def test_a_fault_reaches_clients_without_the_key(tmp_path: Path) -> None:
    refused = answers_with(f'{{"error": {{"message": "No such key: {KEY}"}}}}'.encode(), 401)
    async with serving(refused) as server, gateway(tmp_path, log="sqlite", agents=agents(server)) as served:
        one = await session(served)
        async with served.http.post(served.url(f"/aap/sessions/{one}/turns"), json={
            "messages": [{"role": "user", "content": "Hi"}], "stream": "delta",
        }) as response:
            assert KEY not in await response.text()
        view = m.fold(one, await records(served, one))
        assert isinstance(view.ended, m.TurnEnded) and view.ended.fault is not None
        assert view.ended.fault.code == "backend" and "No such key: ***" in view.ended.fault.message
        assert not any(KEY.encode() in kept for kept in written(tmp_path))


async def test_clients_are_told_of_the_tools_and_the_model(tmp_path: Path) -> None:
    async with serving(says("x")) as server, gateway(tmp_path, agents=agents(server, tools={
        "calc": "ask", "clock": "deny"})) as served:
        card = served.gateway.components.cards["llm"]
        assert (card.name, card.title, card.model) == ("llm", "Chat-completions model", "m")
        assert [(tool.spec.name, tool.permission) for tool in card.tools] == [("calc", "ask")]
        async with served.http.get(served.url("/aap/meta")) as response:
            assert [tool["name"] for tool in (await response.json())["agents"][0]["tools"]] == ["calc"]


class TalkativeService:
    """A service that talks for as long as anybody listens."""

    def __init__(self) -> None:
        self.begun = self.left = 0

    async def talk(self, writer: asyncio.StreamWriter, asked: Any) -> None:
        self.begun += 1
        writer.write(head())
        try:
            while not writer.is_closing():
                writer.write(packet(chunk({"content": "on and "})))
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            self.left += 1


async def test_a_turn_is_interrupted_while_the_service_talks(tmp_path: Path) -> None:
    service = TalkativeService()
    async with serving(service.talk) as server, gateway(tmp_path, agents=agents(server)) as served:
        one = await session(served)
        await post(served, f"/api/v1/cloud/sessions/{one}/events", {"events": [
            {"type": "user.message", "content": "Talk"}]})
        view = await served.gateway.sessions.get("", one)
        await until(lambda: view.speaking and service.begun)
        await post(served, f"/api/v1/cloud/sessions/{one}/events", {"events": [{"type": "user.interrupt"}]})
        await until(lambda: view.status is m.SessionStatus.IDLE)
        await until(lambda: service.left)
        assert view.ended is not None and view.ended.outcome == "interrupted"


async def test_no_request_outlives_its_turn_whenever_that_is_interrupted(tmp_path: Path) -> None:
    """A stream that nobody reads is paid for: the interrupt comes before, while and after the request is sent."""
    service, begun = TalkativeService(), list[int]()
    async with serving(service.talk) as server, gateway(tmp_path, agents=agents(server)) as served:
        for steps in range(30):
            one = await session(served)
            await served.gateway.sessions.submit("", one, [m.SendMessage(content="Talk")])
            for _ in range(steps):
                await asyncio.sleep(0)
            begun.append(service.begun)
            await served.gateway.sessions.submit("", one, [m.Interrupt()])
            view = await served.gateway.sessions.get("", one)
            await until(lambda view=view: view.status is m.SessionStatus.IDLE)  # type: ignore[misc]
            await asyncio.sleep(1)
            assert service.left == service.begun, f"the service still talks after an interrupt at step {steps}"
            assert view.ended is not None and view.ended.outcome == "interrupted"
    assert begun[0] == 0 and begun[-1] == service.begun, "some came before the request, and some after it"
