"""Runs over HTTP: chat as events or at once, and what can be done to a run by its id."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.zenflux.client import API, talking
from tests.support.dialects.zenflux.reader import events, read_stream
from tests.support.gateway_server import until

CAMEL = {"message": "/tool clock hello", "userId": "ann", "conversationId": None, "messageId": "m", "agentId": "demo",
         "stream": True, "backgroundTasks": [], "files": [], "variables": {}}
SNAKE = {"message": "/tool clock hello", "user_id": "ann", "agent_id": "demo"}


# -- POST /chat -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("body", [CAMEL, SNAKE])
async def test_chat_as_events(tmp_path: Path, body: dict[str, Any]) -> None:
    async with talking(tmp_path) as client:
        stream = await client.stream(**body)
        [run] = read_stream(events(stream))
        assert len(run.messages) == 1
        assert [block["type"] for block in run.blocks] == ["tool_use", "tool_result", "text"]
        shown = await client.call("GET", f"/conversations/{run.conversation_id}")
        assert shown["user_id"] == "ann"


async def test_events_are_not_merged(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        [run] = read_stream(events(await client.stream(message="/burst 300", userId="local")))
        assert run.deltas > 300


async def test_a_stream_that_waits_shows_that_it_lives(tmp_path: Path) -> None:
    async with talking(tmp_path, zenflux={"ping_seconds": 0.05}) as client:
        url, body = client.served.url(f"{API}/chat"), {"message": "/ask", "userId": "local"}
        async with client.served.http.post(url, json=body) as answer:
            async for line in answer.content:
                if b'"type":"ping"' in line:
                    assert line == b'data: {"type":"ping","data":{"type":"ping"}}\n'
                    break


async def test_a_stream_goes_on_when_somebody_has_answered(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        stream = asyncio.create_task(client.stream(message="/permit", userId="local"))
        sessions = client.served.gateway.table
        await until(lambda: any(one.view.asks and one.stored_seq == one.view.head for one in sessions))
        [one] = await client.call("GET", "/human-confirmation/pending")
        await client.call("POST", f"/human-confirmation/{one['session_id']}", json={"response": "approve"})
        [run] = read_stream(events(await stream))
        assert [block["type"] for block in run.blocks] == ["tool_use", "tool_result", "text"]
        assert run.messages[0].note("confirmation_request")


async def test_chat_at_once(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        told = await client.call("POST", "/chat", json={"message": "hello", "userId": "local", "stream": False})
        assert told["content"] == "You said: hello"
        assert told["status"] == "completed"
        assert told["task_id"] == told["session_id"]
        assert told["usage"]["llm_calls"] == 1
        info = await client.call("GET", f"/session/{told['task_id']}")
        assert info["active"] is False
        assert info["status"] == "completed"


async def test_chat_at_once_that_fails_says_why(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        told = await client.call("POST", "/chat", json={"message": "/fail", "userId": "local", "stream": False})
        assert told["status"] == "failed"
        assert told["error"]["message"] == "The demo agent broke in the middle of a sentence, as it was told to."
        body = {"message": "hello", "userId": "local", "conversationId": told["conversation_id"], "stream": False}
        assert "error" not in await client.call("POST", "/chat", json=body)


async def test_chat_at_once_that_takes_too_long_goes_on(tmp_path: Path) -> None:
    async with talking(tmp_path, zenflux={"sync_seconds": 0.2}) as client:
        told = await client.call("POST", "/chat", json={"message": "/slow 10", "userId": "local", "stream": False})
        assert told["status"] == "running"
        await until(lambda: not client.served.gateway.table.turn_count)
        assert (await client.call("GET", f"/session/{told['task_id']}"))["active"] is False


async def test_chat_at_once_that_asks_shows_what(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        told = await client.call("POST", "/chat", json={"message": "/permit", "userId": "local", "stream": False})
        assert told["status"] == "running"
        assert told["pending"][0]["tool_name"] == "calc"


@pytest.mark.parametrize(("body", "status"), [
    ({"message": ""}, 400), ({"message": 5}, 400), ({"message": "x", "userId": 5}, 400),
    ({"message": "x", "stream": "no"}, 400), ({"message": "x", "agentId": "nobody"}, 404),
    ({"message": "x", "conversationId": "nope"}, 404), ({"message": "x", "files": [{"file_id": "file_no"}]}, 404),
])
async def test_chat_that_is_wrong(tmp_path: Path, body: dict[str, Any], status: int) -> None:
    async with talking(tmp_path) as client:
        assert await client.call("POST", "/chat", json=body, status=status)


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b"5", b"\xff"])
async def test_chat_that_is_no_object(tmp_path: Path, body: bytes) -> None:
    async with talking(tmp_path) as client:
        assert await client.call("POST", "/chat", data=body, status=400)


# -- runs by id -------------------------------------------------------------------------------------------------------

async def test_a_run_is_seen_while_it_goes_on_and_afterwards(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/slow 400", user_id="ann")
        listed = await client.call("GET", "/sessions")
        assert listed["total"] == 1
        assert listed["sessions"][0].items() >= {
            "session_id": begun["session_id"], "conversation_id": begun["conversation_id"], "active": True,
            "user_id": "ann", "status": "running", "message_preview": "/slow 400", "has_plan": False}.items()
        assert (await client.call("GET", "/sessions?user_id=bob"))["total"] == 0
        info = await client.call("GET", f"/session/{begun['session_id']}")
        assert set(info) >= {"session_id", "active", "turns", "message_count", "has_plan", "start_time"}
        assert info["start_time"].endswith("Z")
        stopped = await client.call("POST", f"/session/{begun['session_id']}/stop")
        assert stopped["status"] == "stopped"
        assert (await chat.over(begun["session_id"])).status == "cancelled"
        again = await client.call("POST", f"/session/{begun['session_id']}/stop")
        assert again["session_id"] == begun["session_id"]
        info = await client.call("GET", f"/session/{begun['session_id']}")
        assert (info["active"], info["status"]) == (False, "cancelled")
        assert (await client.call("GET", "/sessions"))["sessions"] == []


async def test_a_run_is_ended(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/slow 400")
        ended = await client.call("DELETE", f"/session/{begun['session_id']}")
        assert ended["status"] == "cancelled"
        assert (await chat.over(begun["session_id"])).status == "cancelled"
        for _ in range(2):
            assert (await client.call("DELETE", f"/session/{begun['session_id']}"))["status"] == "cancelled"


@pytest.mark.parametrize(("words", "status"), [("hello", "completed"), ("/fail", "failed")])
async def test_a_run_that_is_over_is_not_stopped(tmp_path: Path, words: str, status: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run(words)
        assert (await client.call("POST", f"/session/{run.session_id}/stop"))["status"] == status
        assert (await client.call("DELETE", f"/session/{run.session_id}"))["status"] == status
        aborted = await chat.ask("chat.abort", session_id=run.session_id)
        assert (aborted["ok"], aborted["payload"]["status"]) == (True, status)


async def test_a_plan_is_noticed(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("/plan")
        assert (await client.call("GET", f"/session/{run.session_id}"))["has_plan"] is True


@pytest.mark.parametrize(("method", "path"), [
    ("GET", "/session/nope"), ("DELETE", "/session/nope"), ("POST", "/session/nope/stop"),
    ("POST", "/session/nope/rollback"), ("POST", "/session/nope/confirm_continue"), ("GET", "/nowhere"),
])
async def test_a_run_that_is_not_there(tmp_path: Path, method: str, path: str) -> None:
    async with talking(tmp_path) as client:
        assert await client.call(method, path, status=404)


async def test_an_ask_is_no_run(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/ask")
        asked = await chat.asked()
        assert await client.call("GET", f"/session/{asked['request_id']}", status=404)
        await client.call("POST", f"/session/{begun['session_id']}/stop")


# -- what can be gone back to -----------------------------------------------------------------------------------------

async def test_a_rollback_is_shown_before_it_is_chosen(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/rollback")
        offered = await chat.until("rollback_options")
        path = f"/session/{begun['session_id']}/rollback"
        shown = await client.call("GET", f"{path}/preview")
        assert {name: shown[name] for name in offered} == offered
        assert len(offered["option_ids"]) == len(offered["options"]) > 0
        assert (shown["files"], set(shown["summary"])) == ([], {"total", "modified", "deleted", "unchanged"})
        assert await client.call("GET", f"{path}/preview") == shown, "looking changes nothing"
        await client.call("POST", path, json={"option": offered["option_ids"][-1]})
        assert (await chat.over(begun["session_id"])).status == "completed"
        assert await client.call("GET", f"{path}/preview", status=404)


# -- the client's own names for its messages --------------------------------------------------------------------------

async def test_a_message_has_the_id_that_its_client_gave_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        first = await chat.send("hello", message_id="m-1")
        await chat.over(first["session_id"])
        talk = first["conversation_id"]
        assert first["message_id"] == "m-1"
        assert chat.events[0]["data"]["message_id"] == "m-1"
        streamed = await client.stream(message="again", userId="local", conversationId=talk, messageId="m-2")
        assert b'"message_id":"m-2"' in streamed.split(b"\n\n")[0]
        await client.call("POST", "/chat", json={"message": "nameless", "conversation_id": talk, "stream": False})
        said = (await client.call("GET", f"/conversations/{talk}/messages"))["messages"][::2]
        assert [one["id"] for one in said[:2]] == ["m-1", "m-2"]
        assert said[2]["id"].startswith("cmd_")
        assert (await client.call("GET", f"/session/{first['session_id']}"))["message_id"] == "m-1"
        async with client.chat() as later:
            resumed = await later.ask("session.resume", session_id=first["session_id"])
            assert resumed["payload"]["message_id"] == "m-1"
            await later.over(first["session_id"])
            assert later.events == [event for event in chat.events if event["session_id"] == first["session_id"]]


@pytest.mark.parametrize("name", ["m-1", "x" * 129, 5])
async def test_a_message_cannot_have_that_id(tmp_path: Path, name: Any) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        first = await chat.send("hello", message_id="m-1")
        await chat.over(first["session_id"])
        refused = await chat.ask(
            "chat.send", message="again", user_id="local", conversation_id=first["conversation_id"], message_id=name)
        assert refused["error"]["code"] == "VALIDATION_ERROR"
        assert "message_id" in refused["error"]["message"]
        assert (await chat.run("elsewhere", message_id="m-1")).status == "completed"
