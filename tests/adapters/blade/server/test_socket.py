"""Blade over real Socket.IO: chats, questions, stops, other people's sockets, and every sort of bad input."""

from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import socketio

from tests.support.dialects.blade.client import SocketClient, blade, connect
from tests.support.dialects.blade.reader import Page
from tests.support.file_contents import whole
from tests.support.gateway_server import Served, until
from tests.support.key_stores import key_store

PLAIN = [
    "chat:start", "turn:start user completed", "turn:end user completed", "turn:start assistant streaming",
]
DONE = ["turn:end assistant completed", "chat:end completed"]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with blade(tmp_path) as served:
        yield served


@pytest.fixture
async def client(served: Served) -> AsyncIterator[SocketClient]:
    async with connect(served) as talker:
        yield talker


# -- connecting -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("transports", [None, ["websocket"], ["polling"]])
async def test_a_chat_by_every_transport(served: Served, transports: Any) -> None:
    async with connect(served, transports=transports) as client:
        session = await client.session()
        assert await client.subscribe(session) == {"status": "ok", "session_id": session}
        end = await client.chat(session, "hello there")
        assert client.sio.transport() == ("polling" if transports == ["polling"] else "websocket")
        assert (end["status"], end["finish_reason"], end["result"]) == ("completed", "completed", None)
        assert client.page.outline == [*PLAIN, *["add_content text"] * 4, *DONE]
        assert client.page.text == "You said: hello there"


async def test_the_socket_speaks_engine_io_4_at_its_path(served: Served) -> None:
    async with served.http.get(served.url("/socket.io/?EIO=4&transport=polling")) as response:
        opened = (await response.text())[1:]
        assert response.status == 200
        assert orjson.loads(opened)["upgrades"] == ["websocket"]
    async with served.http.get(served.url("/socket.io/?EIO=3&transport=polling")) as response:
        assert response.status == 400


async def test_a_burst_reaches_a_client_that_polls(served: Served) -> None:
    async with connect(served, transports=["polling"]) as client:
        session = await client.session()
        await client.chat(session, "/burst 3000")
        assert client.page.text.startswith("word " * 3000)


async def test_a_client_without_a_key_is_refused(tmp_path: Path) -> None:
    key = key_store(tmp_path / "data").add("ann")
    async with blade(tmp_path, auth="keys") as served:
        for token in (None, "wrong", 7):
            sio = socketio.AsyncClient(reconnection=False)
            with pytest.raises(socketio.exceptions.ConnectionError):
                await sio.connect(served.address, auth={"token": token} if token else None, wait_timeout=60)
            await sio.shutdown()
        async with connect(served, key) as client:
            session = await client.session()
            assert (await client.chat(session, "hi"))["status"] == "completed"


async def test_other_peoples_sessions_are_denied(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    ann, ben = keys.add("ann"), keys.add("ben")
    async with blade(tmp_path, auth="keys") as served, connect(served, ann) as hers, connect(served, ben) as his:
        session = await hers.session()
        for event in ("session:subscribe", "chat:send", "chat:stop", "chat:compact"):
            ack = await his.sio.call(event, {"session_id": session, "message": "hi"}, timeout=60)
            assert ack["status"] == "error"
        assert [error["message"] for error in his.page.errors] == ["Access denied"] * 4
        assert all("session_id" not in error for error in his.page.errors)
        await hers.chat(session, "hi")
        assert his.page.names == ["system:error"] * 4
        assert await hers.status(session) == "completed"
        assert (await his.call("GET", f"/sessions/{session}"))[0] == 404


async def test_a_client_whose_key_was_removed_is_told_and_disconnected(tmp_path: Path) -> None:
    keys = key_store(tmp_path / "data")
    async with blade(tmp_path, auth="keys") as served, connect(served, keys.add("ann")) as client:
        session = await client.session()
        await client.chat(session, "one")
        keys.remove("ann")
        await client.until(lambda: client.page.errors)
        assert [error["code"] for error in client.page.errors] == ["unauthenticated"]
        await client.sio.wait()
        assert not client.sio.connected
        assert client.page.text == "You said: one"


@pytest.mark.parametrize(("sent", "code"), [
    ({"message": ""}, "invalid_request"), ({"session_id": "sess_nobody", "message": "x"}, "access_denied"),
    ({"message": "x", "mode": "dreaming"}, "invalid_request"), ({"message": "x"}, "session_busy"),
    ({"askuser_answer": {"tool_call_id": "tc_nobody"}}, "invalid_askuser_answer"),
])
async def test_a_refusal_has_one_name(client: SocketClient, sent: dict[str, Any], code: str) -> None:
    session = await client.session()
    await client.send(session, "/slow 20")
    ack = await client.sio.call("chat:send", {"session_id": session, **sent}, timeout=60)
    await client.until(lambda: client.page.errors)
    [error] = client.page.errors
    assert ack["code"] == error["code"] == code
    assert ack["message"] == error["message"]


# -- rooms ------------------------------------------------------------------------------------------------------------

async def test_only_those_who_subscribe_hear(served: Served, client: SocketClient) -> None:
    session = await client.session()
    async with connect(served) as watching, connect(served) as elsewhere:
        await watching.subscribe(session)
        await client.chat(session, "one")
        await watching.until(lambda: watching.page.chats)
        assert watching.page.outline == client.page.outline
        assert (await watching.sio.call("session:unsubscribe", {"session_id": session}, timeout=60))["status"] == "ok"
        await client.chat(session, "two")
        assert len(watching.page.chats) == 1
        assert elsewhere.page.events == []


async def test_who_speaks_hears_and_what_is_said_first_is_done_first(client: SocketClient) -> None:
    """A client that does not wait for answers: subscribe and send follow each other on the wire."""
    session = await client.session()
    await client.sio.emit("session:subscribe", {"session_id": session})
    await client.sio.emit("chat:send", {"session_id": session, "message": "hi", "output_schema": None, "model": None})
    await client.until(lambda: client.page.chats)
    assert client.page.outline[0] == "chat:start"
    other, client.page = await client.session(), Page()
    await client.chat(other, "no subscription needed")
    assert {payload["session_id"] for _, payload in client.page.events} == {other}


async def test_snapshots_can_be_switched_off(tmp_path: Path) -> None:
    async with blade(tmp_path, dialects={"blade": {"patch_snapshots": "off"}}) as served, connect(served) as client:
        client.page = Page(snapshots=False)
        await client.chat(await client.session(), "/think /tool calc hello")
        assert client.page.text == "calc returned 42\nYou said: hello"


async def test_raw_events_come_beside_the_others(client: SocketClient) -> None:
    session = await client.session()
    await client.subscribe(session, event_format="raw", after_sequence=0)
    await client.chat(session, "hi")
    plain = [payload for event, payload in client.raw if event != "turn:events"]
    await client.until(lambda: len(client.raw) == 2 * len(plain))
    wrapped = [payload["events"][0] for event, payload in client.raw if event == "turn:events"]
    assert [event["payload"] for event in wrapped] == plain


@pytest.mark.parametrize("again", [False, True])
async def test_who_subscribes_before_each_question_gets_each_answer(served: Served, again: bool) -> None:
    """Without `resume` a cursor means nothing: published clients send 0 each time, on one socket or on one for each."""
    async with connect(served) as first:
        session, answers = await first.session(), []
        for question in ("one", "two", "three"):
            async with connect(served) as other:
                client = first if again else other
                client.page = Page()
                await client.sio.emit("session:subscribe", {
                    "session_id": session, "event_format": "raw", "after_sequence": 0,
                })
                await client.chat(session, question)
                answers.append(client.page.text)
        assert answers == ["You said: one", "You said: two", "You said: three"]


async def test_who_subscribes_again_in_the_middle_loses_nothing(served: Served) -> None:
    async with connect(served, transports=["polling"]) as client:
        session = await client.session()
        await client.subscribe(session)
        await client.send(session, "/burst 200")
        for _ in range(3):
            await client.subscribe(session)
        await client.until(lambda: client.page.chats)
        assert client.page.text.startswith("word " * 200)


async def test_a_client_that_comes_back_in_the_middle_misses_nothing(served: Served) -> None:
    async with connect(served) as first:
        session = await first.session()
        await first.send(session, "/slow 20 and more")
        await first.until(lambda: len(first.page.events) > 8)
    had = first.raw
    last = had[-1][1]["stream_sequence"]
    async with connect(served) as again:
        again.page = first.page
        await again.subscribe(session, after_sequence=last, resume=True)
        await again.until(lambda: again.page.chats)
        assert again.page.text.startswith(" ".join(map(str, range(1, 21))))
        shown = {turn["turn_id"]: turn["blocks"] for turn in await again.messages(session)}
        assert {turn_id: turn["blocks"] for turn_id, turn in again.page.turns.items()} == shown


async def test_a_turn_started_elsewhere_is_a_chat_here(served: Served, client: SocketClient) -> None:
    """A client of another dialect, in the same session."""
    session = await client.session()
    await client.subscribe(session)
    body = {"messages": [{"role": "user", "content": "/think hello"}], "stream": "none"}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=body) as response:
        assert response.status == 200
    await client.until(lambda: client.page.chats)
    assert client.page.outline[:4] == PLAIN
    assert client.page.text == "You said: hello"
    await client.chat(session, "/tool clock")
    async with served.http.get(served.url(f"/aap/sessions/{session}/history?type=full")) as response:
        told = (await response.json())["history"]["full"]
    assert [message["role"] for message in told] == ["user", "assistant", "user", "assistant", "tool", "assistant"]


async def test_a_session_made_elsewhere_is_a_session_here(served: Served, client: SocketClient) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    made = {"agent": {"name": "demo", "tools": [{"name": "calc"}]}, "messages": said}
    async with served.http.post(served.url("/aap/sessions"), json=made) as response:
        session = (await response.json())["sessionId"]
    assert [(turn["role"], turn["blocks"][0]["content"]) for turn in await client.messages(session)] == [
        ("user", "Hi"), ("assistant", "Ho"),
    ]
    assert await client.status(session) == "created"
    end = await client.chat(session, "/permit")
    call_id = end["pause_tool_data"]["tool_call_id"]
    async with served.http.get(served.url(f"/aap/sessions/{session}/history?type=full")) as response:
        call = (await response.json())["history"]["full"][-1]["content"][0]
    decided = {"role": "tool_permission", "toolCallId": call["toolCallId"], "granted": True}
    granted = {"messages": [decided], "stream": "none"}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=granted) as response:
        assert response.status == 200
    await client.until(lambda: len(client.page.chats) == 2)
    assert next(call for call in client.page.calls() if call["id"] == call_id)["status"] == "done"


# -- questions --------------------------------------------------------------------------------------------------------

async def asking(client: SocketClient, message: str = "/ask") -> tuple[str, str]:
    session = await client.session()
    end = await client.chat(session, message)
    assert (end["status"], end["pause_tool"]) == ("completed", "builtin:AskUserQuestion")
    assert await client.status(session) == "waiting_for_input"
    return session, end["pause_tool_data"]["tool_call_id"]


async def test_a_question_is_asked_and_answered(client: SocketClient) -> None:
    session, call_id = await asking(client)
    call = client.page.calls()[-1]
    assert (call["id"], call["tool_name"], call["status"]) == (call_id, "AskUserQuestion", "awaiting_answer")
    questions = orjson.loads(call["arguments"])["questions"]
    assert [question["multiSelect"] for question in questions] == [False, True]
    await client.answer(session, call_id, selections={"0": [2], "1": [0, 2]})
    assert client.page.text == "AskUserQuestion returned Colour: Blue; Fruits: Apple, Cherry"
    assert await client.status(session) == "completed"
    listed = await client.messages(session)
    assert [turn["status"] for turn in listed] == ["completed"] * 4
    assert listed[1]["tool_calls"][0]["status"] == "done"
    picks = {"tool_call_id": call_id, "selections": {"0": [2], "1": [0, 2]}, "custom": {}}
    assert listed[2]["blocks"][0]["content"] == picks


WRONG: list[dict[str, Any]] = [
    {"selections": {"0": [3], "1": [0]}},
    {"selections": {"0": [-1], "1": [0]}},
    {"selections": {"0": [0, 1], "1": [0]}},
    {"selections": {"0": [0]}},
    {"selections": {"0": [0], "1": [0], "2": [0]}},
    {"selections": {"0": [0], "1": [0, 0]}},
    {"selections": {"0": [0], "1": []}, "custom": {"1": ""}},
    {"selections": {"0": "red", "1": [0]}},
    {"tool_call_id": "tc_nobody", "selections": {"0": [0], "1": [0]}},
    {"tool_call_id": 7},
]


async def test_a_wrong_answer_leaves_the_question_open(client: SocketClient) -> None:
    session, call_id = await asking(client)
    for wrong in WRONG:
        ack = await client.send(session, askuser_answer={"tool_call_id": call_id, **wrong})
        assert ack["status"] == "error", wrong
        error = client.page.errors.pop()
        assert error["code"] in ("invalid_askuser_answer", "invalid_request")
        assert error["session_id"] == session
        assert await client.status(session) == "waiting_for_input"
    assert len(client.page.chats) == 1
    await client.answer(session, call_id, selections={0: [0]}, custom={1: "figs"})  # numbers become words on the wire
    assert "Fruits: figs" in client.page.text
    ack = await client.send(session, askuser_answer={"tool_call_id": call_id, "selections": {"0": [0], "1": [0]}})
    assert (ack["status"], client.page.errors[-1]["code"]) == ("error", "invalid_askuser_answer")


@pytest.mark.parametrize(("words", "answer", "told"), [
    ("/ask", {"0": "red", "Fruits": ["Apple", "plum"]}, "Fruits: Apple, plum"),
    ("/ask", ["Red", ["Apple", "Cherry"]], "Fruits: Apple, Cherry"), ("/continue", [["Continue"]], "I went on."),
    ("/permit", "Allow", "calc returned"), ("/permit", "no, never", "denied: no, never"),
])
async def test_an_answer_in_words_as_later_clients_give_it(
    client: SocketClient, words: str, answer: Any, told: str,
) -> None:
    session, call_id = await asking(client, words)
    ack = await client.send(session, askuser_answer={"prompt_id": call_id, "answer": answer})
    assert ack["status"] == "ok", ack
    await client.until(lambda: len(client.page.chats) == 2)
    assert told in client.page.text


async def test_anybody_may_answer_when_the_asker_is_gone(served: Served) -> None:
    async with connect(served) as first:
        session, call_id = await asking(first, "/fork-ask tea")
        awaiting = [call for call in first.page.calls() if call["status"] == "awaiting_answer"]
        assert {call["tool_name"] for call in awaiting} == {"Agent", "AskUserQuestion"}
        reference = awaiting[0]["pending_question_ref"]
        assert reference["child_tool_call_id"] == call_id
    async with connect(served) as second:
        second.page = first.page
        picks = {"tool_call_id": call_id, "selections": {"0": [0], "1": [1]}, "custom": {}}
        assert (await second.chat(session, "用户的回答如下", askuser_answer=picks))["status"] == "completed"
        listed = await second.messages(session)
    children = [turn for turn in listed if turn["parent_fork_tool_call_id"]]
    assert len(children) == 2
    assert {turn["loop_id"] for turn in children} == {reference["child_loop_name"]}
    assert [turn["status"] for turn in listed] == ["completed"] * len(listed)
    assert all(call["status"] == "done" for turn in listed for call in turn["tool_calls"])


@pytest.mark.parametrize(("message", "picks", "said"), [
    ("/permit", {"selections": {"0": [0]}}, "calc returned 42"),
    ("/permit", {"selections": {"0": [1]}, "custom": {"0": "not now"}}, "calc failed: Tool call denied: not now"),
    ("/continue", {"selections": {"0": [0]}}, "I went on."),
    ("/continue", {"selections": {"0": [1]}}, "I stopped."),
    ("/continue", {"custom": {"0": "no"}}, "I stopped."),
    ("/rollback", {"selections": {"0": [1]}}, "I rolled back to: all."),
    ("/rollback", {"custom": {"0": "elsewhere"}}, "I rolled back to: elsewhere."),
    ("/rollback", {"custom": {"0": "None"}}, "I rolled nothing back."),
])
async def test_whatever_else_is_asked_can_be_answered(
    client: SocketClient, message: str, picks: dict[str, Any], said: str,
) -> None:
    session, call_id = await asking(client, message)
    for wrong in ({}, {"selections": {"0": [9]}}, {"selections": {"0": [0, 1]}}, {"selections": {"1": [0]}}):
        ack = await client.send(session, askuser_answer={"tool_call_id": call_id, **wrong})
        assert ack["status"] == "error"
    await client.answer(session, call_id, **picks)
    assert said in client.page.text


async def test_a_tool_of_the_client_is_a_question_too(served: Served, client: SocketClient) -> None:
    tool = {"name": "weather", "description": "", "parameters": {"type": "object"}}
    body = {"agent": {"name": "demo"}, "tools": [tool]}
    async with served.http.post(served.url("/aap/sessions"), json=body) as response:
        session = (await response.json())["sessionId"]
    end = await client.chat(session, "/client-tool")
    await client.answer(session, end["pause_tool_data"]["tool_call_id"], custom={"0": "sunny"})
    assert client.page.text == "weather returned sunny"


async def test_a_message_instead_of_an_answer_cancels_the_question(client: SocketClient) -> None:
    session, call_id = await asking(client)
    end = await client.chat(session, "never mind")
    assert end["status"] == "completed"
    assert client.page.text == "You said: never mind"
    cancelled = next(call for call in client.page.calls() if call["id"] == call_id)
    assert cancelled["status"] == "cancelled"
    assert (await client.messages(session))[1]["status"] == "interrupted"


# -- headless ---------------------------------------------------------------------------------------------------------

async def test_headless_chats_end_with_a_result(client: SocketClient) -> None:
    session = await client.session()
    end = await client.chat(session, "capital?", headless=True)
    assert end["result"] == {"output": "You said: capital?", "result": "You said: capital?"}
    schema = {"type": "object", "properties": {"countries": {"type": "array", "items": {"type": "string"}}},
              "required": ["countries"]}
    end = await client.chat(session, "list", headless=True, output_schema=schema)
    assert end["result"]["schema"] == schema
    assert end["result"]["output"]["countries"] == end["result"]["countries"]
    end = await client.chat(session, "/fail", headless=True)
    assert (end["status"], end["finish_reason"]) == ("failed", None)
    assert "broke" in end["result"]["err_msg"]
    end = await client.chat(session, "/permit", headless=True)
    assert end["result"]["output"] == "calc returned 42"
    ack = await client.send(session, "x", output_schema={"type": 5})
    assert ack["status"] == "error"


async def test_a_headless_chat_asks_nobody(client: SocketClient) -> None:
    session = await client.session()
    end = await client.chat(session, "/ask /fork-ask a task /continue /rollback hello", headless=True)
    assert (end["status"], [*client.page.calls()]) == ("completed", [])
    assert end["result"]["output"].startswith("I am on my own, and leave out /ask.")
    assert "hello" in end["result"]["output"]


async def test_to_plan_is_not_to_act(client: SocketClient) -> None:
    session = await client.session()
    words = "/tool calc /permit /ask /fork a task /fork-ask /parallel /bridge /ui /provider-tool /continue /rollback"
    end = await client.chat(session, words, mode="planning")
    assert (end["status"], [*client.page.calls()]) == ("completed", [])
    assert "I only plan, and leave out /permit." in client.page.text
    await client.chat(session, "/tool calc", mode="executing")
    assert [call["tool_name"] for call in client.page.calls()] == ["calc"]


# -- parts ------------------------------------------------------------------------------------------------------------

async def test_pictures_and_files_come_as_parts(served: Served, client: SocketClient) -> None:
    session = await client.session()
    await client.chat(session, [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "name": "notes.txt", "data": b64encode(b"tea").decode()},
    ])
    assert client.page.text == "You said: look [1 image] [1 file]"
    user = next(iter(client.page.turns.values()))
    shown = [block["content"] for block in user["blocks"]]
    assert shown == ["look", "![image](https://example.org/a.png)", "[notes.txt]"]
    [kept] = await served.gateway.resources.list("file", "")
    assert await whole(await served.gateway.files.open(kept.resource_id)) == b"tea"


async def test_a_message_that_is_too_large_is_refused_and_the_socket_lives(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, connect(served, transports=["websocket"]) as client:
        session = await client.session()
        part = {"type": "file", "name": "big.bin", "data": "A" * 20 * 1024 * 1024}
        ack = await client.send(session, [part])
        assert (ack["status"], ack["code"]) == ("error", "too_large")
        assert client.page.errors[-1]["session_id"] == session
        assert (await client.chat(session, "small"))["status"] == "completed"


async def test_a_packet_beyond_all_measure_ends_its_own_connection_only(tmp_path: Path) -> None:
    dialects = {"blade": {"message_bytes": 1024}}
    async with blade(tmp_path, dialects=dialects) as served, connect(served, transports=["websocket"]) as client:
        session = await client.session()
        await client.sio.emit("chat:send", {"session_id": session, "message": "x" * 10_000})
        await until(lambda: not client.sio.connected)
        assert [error["code"] for error in client.page.errors] == ["too_large"]
        async with connect(served) as other:
            assert (await other.chat(session, "hi"))["status"] == "completed"


@pytest.mark.parametrize("message", ["NaN", "[" * 5000 + "]" * 5000, '"half'])
async def test_a_packet_that_cannot_be_read_is_refused_and_the_socket_lives(client: SocketClient, message: str) -> None:
    session = await client.session()
    await client.sio.eio.send(f'2["chat:send",{{"session_id":"{session}","message":{message}}}]')
    await client.until(lambda: client.page.errors)
    [error] = client.page.errors
    assert error["code"] == "invalid_request"
    assert error["message"].startswith("message: nested 5002 levels" if "[" in message else "malformed packet: ")
    assert (await client.chat(session, "hi"))["status"] == "completed"


# -- bad input --------------------------------------------------------------------------------------------------------

BAD: list[tuple[Any, str]] = [
    (None, "Missing session_id or message"),
    ("words", "Missing session_id or message"),
    ({}, "Missing session_id or message"),
    ({"message": "hi"}, "Missing session_id or message"),
    ({"session_id": 7, "message": "hi"}, "Missing session_id or message"),
    ({"session_id": "$"}, "Missing session_id or message"),
    ({"session_id": "$", "message": ""}, "Missing session_id or message"),
    ({"session_id": "$", "message": []}, "Missing session_id or message"),
    ({"session_id": "$", "message": None}, "Missing session_id or message"),
    ({"session_id": "sess_nobody", "message": "hi"}, "Access denied"),
    ({"session_id": "$", "message": 7}, "message"),
    ({"session_id": "$", "message": [{"type": "video"}]}, "message"),
    ({"session_id": "$", "message": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}, "url"),
    ({"session_id": "$", "message": [{"type": "file", "name": "x", "data": "not base64!"}]}, "base64"),
    ({"session_id": "$", "message": "hi", "mode": "dreaming"}, "mode"),
]


async def test_what_cannot_be_understood_is_told_to_the_one_who_said_it(served: Served, client: SocketClient) -> None:
    session = await client.session()
    async with connect(served) as watching:
        await watching.subscribe(session)
        for bad, words in BAD:
            if isinstance(bad, dict) and bad.get("session_id") == "$":
                bad = {**bad, "session_id": session}
            ack = await client.sio.call("chat:send", bad, timeout=60)
            assert ack["status"] == "error", bad
            error = client.page.errors[-1]
            assert words in error["message"], bad
            assert ("session_id" in error) is not (words in ("Missing session_id or message", "Access denied"))
        assert await client.status(session) == "created"
        await client.sio.emit("no:such:event", {"x": 1})
        await client.chat(session, "still here")
        await watching.until(lambda: watching.page.chats)
        assert watching.page.errors == []


async def test_half_of_a_character_is_told_as_one_that_is_missing(client: SocketClient) -> None:
    session = await client.session()
    await client.sio.eio.send(f'2["chat:send",{{"session_id":"{session}","message":"cut \\ud83d"}}]')
    await client.until(lambda: client.page.chats)
    assert client.page.text == "You said: cut \ufffd"


async def test_one_chat_at_a_time(served: Served, client: SocketClient) -> None:
    session = await client.session()
    await client.send(session, "/slow 20")
    async with connect(served) as other:
        ack = await other.send(session, "me too")
        assert ack["status"] == "error"
        assert other.page.errors == [
            {"message": "Session already has an active chat", "session_id": session, "code": "session_busy"},
        ]
    await client.until(lambda: client.page.chats)
    assert client.page.errors == []


# -- stopping ---------------------------------------------------------------------------------------------------------

async def test_a_chat_can_be_stopped_and_stopped_again(client: SocketClient) -> None:
    session = await client.session()
    idle = await client.sio.call("chat:stop", {"session_id": session}, timeout=60)
    assert idle == {"status": "idle", "session_id": session}
    first = await client.chat(session, "one")
    ack = await client.send(session, "/slow 200")
    await client.until(lambda: client.page.text.count("2 "))
    stale = {"session_id": session, "chat_run_id": first["chat_run_id"]}
    assert (await client.sio.call("chat:stop", stale, timeout=60))["status"] == "idle"
    for nobodys in ("nonsense", 7, "", f"{ack['chat_run_id']}9", "chat_elsewhere_3"):
        wrong = {"session_id": session, "chat_run_id": nobodys}
        assert (await client.sio.call("chat:stop", wrong, timeout=60))["status"] == "idle"
    mine = {"session_id": session, "chat_run_id": ack["chat_run_id"]}
    assert (await client.sio.call("chat:stop", mine, timeout=60))["status"] == "stopped"
    await client.until(lambda: len(client.page.chats) == 2)
    assert client.page.outline[-2:] == ["turn:end assistant interrupted", "chat:end interrupted"]
    assert client.page.chats[-1]["finish_reason"] is None
    assert (await client.sio.call("chat:stop", mine, timeout=60))["status"] == "idle"
    assert await client.status(session) == "interrupted"


async def test_a_question_can_be_stopped(client: SocketClient) -> None:
    session, _ = await asking(client)
    assert (await client.sio.call("chat:stop", {"session_id": session}, timeout=60))["status"] == "stopped"
    await client.until(lambda: client.page.outline[-1] == "turn:end assistant interrupted")
    assert client.page.calls()[0]["status"] == "cancelled"
    assert (await client.chat(session, "hello"))["status"] == "completed"
    assert client.page.names.count("chat:end") == 2, "one of the question, one of the next chat"


@pytest.mark.parametrize("words", ["/ask", "/permit", "/parallel", "/fork-ask", "/continue", "/rollback"])
@pytest.mark.parametrize("then", ["answer", "stop", "message"])
async def test_ends_of_turns_alone_are_the_whole_conversation(client: SocketClient, words: str, then: str) -> None:
    """Strategy B: a page that looks at `turn:end` only shows what GET messages has, whatever became of an ask."""
    session, call_id = await asking(client, words)
    if then == "answer":
        await client.answer(session, call_id, selections={"0": [0], **({"1": [0]} if "ask" in words else {})})
    elif then == "stop":
        await client.sio.call("chat:stop", {"session_id": session}, timeout=60)
        await client.until(lambda: client.page.names[-1] == "turn:end" and "paused" not in client.page.statuses)
    else:
        await client.chat(session, "never mind")
    kept, shown = await client.messages(session), client.page.ends
    assert sorted(shown, key=lambda turn_id: shown[turn_id]["sequence"]) == [turn["turn_id"] for turn in kept]
    assert [{key: shown[turn["turn_id"]].get(key) for key in turn} for turn in kept] == kept


async def test_a_compaction_is_acknowledged_when_it_is_done(client: SocketClient) -> None:
    session = await client.session()
    await client.chat(session, "much to say")
    assert (await client.sio.call("chat:compact", {"session_id": session}, timeout=60))["status"] == "ok"
    assert (await client.messages(session))[-1]["kind"] == "compaction"
    await client.send(session, "/slow 40")
    assert (await client.sio.call("chat:compact", {"session_id": session}, timeout=60))["status"] == "error"


# -- a socket that never reads ----------------------------------------------------------------------------------------

async def test_a_socket_that_never_reads_is_cut_and_nobody_waits_for_it(tmp_path: Path) -> None:
    async with blade(tmp_path, limits={"send_seconds": 0.3}) as served, connect(served) as client:
        session = await client.session()
        deaf = await served.http.ws_connect(
            served.url("/socket.io/?EIO=4&transport=websocket"), max_msg_size=0, receive_timeout=None,
        )
        await deaf.receive()
        await deaf.send_str("40")
        await deaf.receive()
        await deaf.send_str("42" + orjson.dumps(["session:subscribe", {"session_id": session}]).decode())
        deaf._response.connection.transport.pause_reading()  # type: ignore[union-attr]
        await until(lambda: served.gateway.hub.subscribers == 1)
        await client.chat(session, "/burst 40000")
        await until(lambda: served.gateway.hub.subscribers == 1)
        assert (await client.chat(session, "still here"))["status"] == "completed"
        deaf._response.connection.transport.abort()  # type: ignore[union-attr]


async def test_those_who_leave_are_followed_no_more(served: Served) -> None:
    async with connect(served) as client:
        session = await client.session()
        await client.subscribe(session)
        assert served.gateway.hub.subscribers == 1
    await until(lambda: served.gateway.hub.subscribers == 0)


async def test_everybody_is_told_when_the_server_stops(tmp_path: Path) -> None:
    async with blade(tmp_path) as served:
        client = await SocketClient(served).connect(transports=["websocket"])
        await client.subscribe(await client.session())
    await until(lambda: not client.sio.connected)
    await client.close()
    with pytest.raises(socketio.exceptions.ConnectionError):
        await SocketClient(served).connect()
