"""Blade over HTTP: sessions and what belongs to them, history, and chats without a socket."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from tests.support.dialects.blade.client import SocketClient, blade
from tests.support.gateway_server import Served, until

SESSION = {
    "id", "intent", "status", "created_at", "updated_at", "user_id", "solution_id", "biz_role_id", "model", "shared",
    "is_pinned", "memory_enabled", "is_persistent", "replay_state",
}
COMPACTION = {
    "compaction_id", "summary_preview", "summary_full", "archived_count", "tokens_before", "tokens_after",
    "saved_ratio", "trigger",
}
TURN = {
    "id", "sequence", "turn_id", "loop_id", "kind", "role", "status", "blocks", "tool_calls", "model", "usage",
    "duration_ms", "started_at", "context_window", "memory_refs", "parent_fork_tool_call_id",
}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with blade(tmp_path) as served:
        yield served


@pytest.fixture
async def client(served: Served) -> SocketClient:
    return SocketClient(served)


async def ask(client: SocketClient, session: str, message: Any = "", **more: Any) -> tuple[int, Any]:
    return await client.call("POST", f"/sessions/{session}/chat", {"message": message, **more})


# -- sessions ---------------------------------------------------------------------------------------------------------

async def test_a_session_is_made_and_shown(client: SocketClient) -> None:
    assert await client.call("GET", "/health") == (200, {"status": "ok"})
    session = await client.session(intent="Tea", solution_id="sol", biz_role_id="cook", model="m-7", is_persistent=True,
                                   template_id="t-1", env={"K": "V"})
    status, shown = await client.call("GET", f"/sessions/{session}")
    assert status == 200
    assert set(shown) == SESSION | {"solution", "primary_skill_snapshot", "session_setup", "viewer_role"}
    assert shown | {"created_at": 0, "updated_at": 0} == shown | {
        "id": session, "intent": "Tea", "status": "created", "user_id": "user_local", "solution_id": "sol",
        "biz_role_id": "cook", "model": "m-7", "shared": False, "is_pinned": False, "memory_enabled": True,
        "is_persistent": True, "replay_state": None, "viewer_role": "owner", "created_at": 0, "updated_at": 0,
    }
    assert shown["created_at"].endswith("Z")
    assert shown["session_setup"]["template_id"] == "t-1"


async def test_a_session_is_changed_and_deleted(served: Served, client: SocketClient) -> None:
    session = await client.session()
    at = f"/sessions/{session}"
    assert (await client.call("PATCH", at, {"intent": "New"}))[1]["intent"] == "New"
    assert (await client.call("PATCH", f"{at}/pin", {"pinned": True}))[1]["is_pinned"] is True
    assert await client.call("PATCH", f"{at}/sharing", {"shared": True}) == (200, {"shared": True})
    assert await client.call("PATCH", f"{at}/memory", {"memory_enabled": False}) == (200, {"memory_enabled": False})
    _, shown = await client.call("PUT", f"{at}/env", {"env": {"TOKEN": "s3cret"}})
    assert (shown["is_pinned"], shown["shared"], shown["memory_enabled"]) == (True, True, False)
    assert "s3cret" not in str(shown)
    view = await served.gateway.sessions.get("", session)
    assert view.metadata[m.PRIVATE]["blade"][m.SECRETS] == {"TOKEN": "s3cret"}
    assert await client.call("DELETE", at) == (200, {"deleted": True})
    assert (await client.call("GET", at))[0] == 404
    assert (await client.call("DELETE", at))[0] == 404


async def test_sessions_are_listed_newest_first_and_found(client: SocketClient) -> None:
    made = [await client.session(intent=f"Tea {n}", template_id=f"t-{n % 2}") for n in range(5)]
    status, page = await client.call("GET", "/sessions")
    assert status == 200
    assert [item["id"] for item in page["items"]] == made[::-1]
    assert set(page["items"][0]) == SESSION
    assert (page["total"], page["limit"], page["offset"], page["content_match_truncated"]) == (5, 20, 0, False)
    _, page = await client.call("GET", "/sessions?limit=2&offset=1")
    assert [item["id"] for item in page["items"]] == made[3:1:-1]
    _, page = await client.call("GET", "/sessions?q=tea%203")
    assert [item["id"] for item in page["items"]] == [made[3]]
    _, page = await client.call("GET", "/sessions?template_id_prefix=t-1")
    assert page["total"] == 2
    mine = await client.session(solution_id="demo")
    _, page = await client.call("GET", "/sessions?solution_id=demo")
    assert [item["id"] for item in page["items"]] == [mine]
    assert (await client.call("GET", "/sessions?solution_id=other"))[1]["total"] == 0
    for wrong in ("limit=0", "limit=x", "offset=-1", "limit=1e3"):
        assert (await client.call("GET", f"/sessions?{wrong}"))[0] == 400


async def test_tools_can_be_disabled(client: SocketClient) -> None:
    session = await client.session(disable_tools=["calc"])
    _, end = await ask(client, session, "/tool calc /tool clock")
    assert "I do not have the tool calc." in end["result"]["output"]
    assert "clock returned" in end["result"]["output"]
    session = await client.session(disable_tools=True)
    assert "I do not have the tool clock." in (await ask(client, session, "/tool clock"))[1]["result"]["output"]


async def test_a_solution_that_is_an_agent_answers(tmp_path: Path) -> None:
    agents = {"demo": {"backend": "demo"}, "other": {"backend": "demo", "model": "o-1"}}
    dialects = {"blade": {"agent": "other"}}
    async with blade(tmp_path, agents=agents, dialects=dialects) as served:
        client = SocketClient(served)
        for body, model in (({}, "o-1"), ({"solution_id": "demo"}, "demo-1"), ({"solution_id": "x"}, "o-1")):
            session = await client.session(**body)
            assert (await client.call("GET", f"/sessions/{session}"))[1]["model"] == model


# -- history ----------------------------------------------------------------------------------------------------------

async def test_nobody_is_anonymous(client: SocketClient) -> None:
    session = await client.session(anonymous=False)
    for path, body in (("", {"intent": "x"}), (f"/{session}/chat", {"message": "x"}), (f"/{session}/share", {})):
        status, refused = await client.call("POST", f"/sessions{path}", {**body, "anonymous": True})
        assert (status, refused["detail"]) == (400, "anonymous: there is no anonymous use here; leave it out")


async def test_messages_are_a_bare_list_of_turns(client: SocketClient) -> None:
    session = await client.session()
    assert await client.messages(session) == []
    await ask(client, session, "/think /tool clock hello")
    listed = await client.messages(session)
    assert [turn["role"] for turn in listed] == ["user", "assistant", "assistant"]
    assert [turn["sequence"] for turn in listed] == [0, 1, 2]
    assert all(set(turn) == TURN | COMPACTION | {"failure_reason"} for turn in listed)
    assert all(turn[key] is None for turn in listed for key in COMPACTION)
    assert [block["type"] for block in listed[1]["blocks"]] == ["thinking", "tool_use", "tool_result"]
    assert listed[1]["tool_calls"][0]["status"] == "done"
    assert listed[2]["usage"]["output_tokens"] > 0
    assert isinstance(listed[2]["context_window"], int)


async def test_a_failure_is_remembered_with_its_reason(client: SocketClient) -> None:
    session = await client.session()
    _, end = await ask(client, session, "/fail")
    assert (end["status"], end["finish_reason"]) == ("failed", None)
    [_, turn] = await client.messages(session)
    assert turn["status"] == "failed"
    assert "broke" in turn["failure_reason"]
    assert await client.status(session) == "failed"


async def test_history_is_a_chain_of_nodes(client: SocketClient) -> None:
    session = await client.session()
    await ask(client, session, "hi")
    status, history = await client.call("GET", f"/sessions/{session}/history")
    assert status == 200
    assert set(history) == {"nodes", "system_prompt_tokens", "tools_tokens", "tokenizer_model"}
    assert [node["parent_id"] for node in history["nodes"]] == [None, history["nodes"][0]["id"]]


async def test_a_compaction_counts_the_turns_it_takes_the_place_of(client: SocketClient) -> None:
    """Turns of this dialect, also those of sub-agents; what the chat of the compaction says is none of them."""
    session = await client.session()

    async def say(words: str) -> None:
        assert (await client.call("POST", f"/sessions/{session}/chat", {"message": words}))[0] == 200

    async def compacted(words: str) -> list[int]:
        await say(words)
        return [turn["archived_count"] for turn in await client.messages(session) if turn["kind"] == "compaction"]

    await say("/parallel /fork hello")
    before = await client.messages(session)
    assert await compacted("/compact once") == [len(before)]
    await say("hello")
    assert await compacted("/compact twice") == [len(before), 4], "the chat of the last one, and the next"
    marks = (await client.call("GET", f"/sessions/{session}/checkpoints"))[1]
    await client.call("POST", f"/sessions/{session}/rewind", {"checkpoint_id": marks[1]["checkpoint_id"]})
    assert await compacted("/compact again") == [len(before)], "as if the other two had not been"


async def test_a_compaction_stands_in_history(client: SocketClient) -> None:
    session = await client.session()
    await ask(client, session, "much to say")
    assert await client.call("POST", f"/sessions/{session}/compact") == (200, {"status": "ok", "session_id": session})
    last = (await client.messages(session))[-1]
    assert (last["kind"], last["role"], last["trigger"]) == ("compaction", "system", "manual")
    assert 0 <= last["saved_ratio"] <= 1
    assert set(last) == TURN | COMPACTION | {"failure_reason"}


# -- chat without a socket --------------------------------------------------------------------------------------------

async def test_a_chat_without_a_socket_gives_its_end(client: SocketClient) -> None:
    session = await client.session()
    status, end = await ask(client, session, "capital?")
    assert status == 200
    assert end["result"] == {"output": "You said: capital?", "result": "You said: capital?"}
    assert (end["session_id"], end["status"], end["finish_reason"]) == (session, "completed", "completed")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    _, end = await ask(client, session, "x", output_schema=schema)
    assert end["result"]["output"] == {"n": end["result"]["n"]}


async def test_a_question_can_be_answered_without_a_socket(served: Served, client: SocketClient) -> None:
    session = await client.session()
    turn = {"messages": [{"role": "user", "content": "/ask"}], "stream": "none"}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=turn) as response:
        assert response.status == 200
    [call_id] = [call["id"] for call in (await client.messages(session))[-1]["tool_calls"]]
    picks = {"tool_call_id": call_id, "selections": {"0": [0], "1": [1]}}
    status, refused = await ask(client, session, askuser_answer={**picks, "selections": {"0": [7]}})
    assert (status, set(refused)) == (400, {"detail"})
    assert await client.status(session) == "waiting_for_input"
    _, end = await ask(client, session, askuser_answer=picks)
    assert end["status"] == "completed"
    assert "AskUserQuestion returned Colour: Red; Fruits: Banana" in str((await client.messages(session))[-1]["blocks"])


async def test_what_must_be_asked_is_asked_without_a_socket_too(served: Served, client: SocketClient) -> None:
    """Questions are left out where nobody is; a tool of the client is nobody else's to carry out."""
    tool = {"name": "weather", "description": "", "parameters": {"type": "object"}}
    body = {"agent": {"name": "demo"}, "tools": [tool]}
    async with served.http.post(served.url("/aap/sessions"), json=body) as response:
        session = (await response.json())["sessionId"]
    _, end = await ask(client, session, "/ask /client-tool")
    call_id = end["pause_tool_data"]["tool_call_id"]
    status, refused = await ask(client, session, askuser_answer={"tool_call_id": call_id, "selections": {"0": [7]}})
    assert (status, set(refused)) == (400, {"detail"})
    assert await client.status(session) == "waiting_for_input"
    _, end = await ask(client, session, askuser_answer={"tool_call_id": call_id, "custom": {"0": "sunny"}})
    assert end["result"]["output"] == "I am on my own, and leave out /ask.\nweather returned sunny"


async def test_of_two_asks_each_is_a_chat(served: Served, client: SocketClient) -> None:
    tool = {"name": "weather", "description": "", "parameters": {"type": "object"}}
    body = {"agent": {"name": "demo", "tools": [{"name": "clock", "trust": True}, {"name": "calc"}]}, "tools": [tool]}
    async with served.http.post(served.url("/aap/sessions"), json=body) as response:
        session = (await response.json())["sessionId"]
    turn = {"messages": [{"role": "user", "content": "/parallel"}], "stream": "none"}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=turn) as response:
        assert response.status == 200
    calls = (await client.messages(session))[-1]["tool_calls"]
    first = next(call["id"] for call in calls if call["status"] == "awaiting_answer")
    _, end = await ask(client, session, askuser_answer={"tool_call_id": first, "selections": {"0": [0]}})
    second = end["pause_tool_data"]["tool_call_id"]
    assert second != first
    _, end = await ask(client, session, askuser_answer={"tool_call_id": second, "custom": {"0": "sunny"}})
    assert (end["status"], end["result"]) == ("completed", None)
    assert "weather returned sunny" in (await client.messages(session))[-1]["blocks"][0]["content"]


async def test_a_chat_that_cannot_be(client: SocketClient) -> None:
    session = await client.session()
    assert (await ask(client, "sess_nobody", "hi"))[0] == 404
    for body in ({}, {"message": ""}, {"message": 7}, {"message": "x", "output_schema": {"type": 5}}, []):
        status, refused = await client.call("POST", f"/sessions/{session}/chat", body)
        assert (status, set(refused)) == (400, {"detail"})
    running = asyncio.create_task(ask(client, session, "/slow 10"))
    await until(lambda: client.served.gateway.table.turn_count)
    assert await client.status(session) == "running"
    status, refused = await ask(client, session, "me too")
    assert (status, refused) == (409, {"detail": "Session already has an active chat"})
    assert (await running)[1]["status"] == "completed"


async def test_nobody_gets_in_without_a_key(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys") as served:
        for key in (None, "wrong"):
            client = SocketClient(served, key)
            for method, path in (("GET", "/sessions"), ("POST", "/sessions"), ("GET", "/sessions/x/messages")):
                status, refused = await client.call(method, path)
                assert (status, set(refused)) == (401, {"detail"})


async def test_variables_of_session_and_message_reach_the_agent(served: Served, client: SocketClient) -> None:
    session = await client.session(env={"A": "1", "B": "2"})
    await ask(client, session, "hi", runtime_env={"B": "3"}, model="m-9", mode="executing")
    records = await served.gateway.sessions.records("", session)
    command = records[1].event.command  # type: ignore[union-attr]
    assert (command.variables, command.model, command.mode, command.headless) == (
        {"A": "1", "B": "3"}, "m-9", "executing", True,
    )
