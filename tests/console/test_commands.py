"""Asks answered in place, whoever asked; what another client answers first is a conflict here; files; hostile words."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.backends.demo.backend import DEMO_CARD, HANDLERS
from tests.support.console_client import ConsoleClient
from tests.support.gateway_server import serving

TOOL = {"name": "where", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}}
ANSWERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "question": ("/ask", "answer_question", {"selections": {"0": [0]}, "custom": {"1": "my own words"}}),
    "permission": ("/permit", "decide_permission", {"granted": True, "reason": "it is harmless"}),
    "denied": ("/permit", "decide_permission", {"granted": False, "reason": "not today"}),
    "client_tool": ("/client-tool", "return_result", {"content": "Pera"}),
    "continuation": ("/continue", "continue_turn", {"proceed": True}),
    "rollback": ("/rollback", "roll_back", {"option": None}),
    "sub-agent": ("/fork-ask", "answer_question", {"selections": {"0": [0]}, "custom": {"1": "mine"}}),
}


async def open_ask(console: ConsoleClient, session: str) -> dict[str, Any]:
    [ask] = (await console.get(f"/sessions/{session}"))["open_asks"]
    return ask


async def ended(console: ConsoleClient, session: str, after: int) -> list[dict[str, Any]]:
    """The records after that one, up to the end of the turn."""
    found = []
    async with asyncio.timeout(60), console.events(f"/sessions/{session}/stream?after={after}") as events:
        async for event in events:
            found.append(event.data)
            if event.data["name"] == "turn.ended":
                return found
    raise AssertionError(found)


@pytest.mark.parametrize("kind", ANSWERS)
async def test_an_ask_is_answered_and_the_turn_goes_on(console: ConsoleClient, kind: str) -> None:
    words, command, answer = ANSWERS[kind]
    session = await console.create(client_tools=[TOOL])
    await console.talk(session, words)
    ask = await open_ask(console, session)
    done = await console.command(session, {"kind": command, "request_id": ask["request_id"], **answer})
    assert done["begun"] and len(done["records"]) == 1
    records = await ended(console, session, ask["seq"])
    assert [record["name"] for record in records if record["name"] == "input.resolved"] == ["input.resolved"]
    accepted = next(record["event"]["command"] for record in records if record["name"] == "input.accepted")
    assert {key: accepted.get(key, answer[key]) for key in answer} == answer
    assert (await console.get(f"/sessions/{session}"))["open_asks"] == []
    body = {"commands": [{"kind": command, "request_id": ask["request_id"], **answer}]}
    assert (await console.error("POST", f"/sessions/{session}/commands", 409, body))["code"] == "conflict"


async def test_what_another_client_answers_disappears_here_at_once(console: ConsoleClient) -> None:
    session, served = await console.create(), console.served
    records = await console.talk(session, "/permit")
    ask = await open_ask(console, session)
    async with asyncio.timeout(60), console.events(f"/sessions/{session}/stream?after={len(records)}") as events:
        turn = {"stream": "delta", "messages": [{"role": "tool", "toolCallId": ask["call_id"], "content": "yes"}]}
        permission = {"role": "tool_permission", "toolCallId": ask["call_id"], "granted": True}
        turn["messages"] = [permission]
        async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=turn) as answer:
            assert answer.status == 200, await answer.text()
        names = [(await anext(events)).data["name"] for _ in range(2)]
        assert "input.resolved" in names
    assert (await console.get(f"/sessions/{session}"))["open_asks"] == []


async def test_a_turn_is_stopped(console: ConsoleClient) -> None:
    session = await console.create()
    started = await console.say(session, "/slow 100000 /slow 100000")
    await console.command(session, {"kind": "interrupt", "turn_id": started["turn_id"]})
    records = await ended(console, session, 1)
    assert records[-1]["event"]["outcome"] == "interrupted"


async def test_a_second_message_waits_for_nobody(console: ConsoleClient) -> None:
    session = await console.create()
    await console.say(session, "/slow 100000")
    body = {"commands": [{"kind": "send_message", "content": "and?"}]}
    assert (await console.error("POST", f"/sessions/{session}/commands", 409, body))["code"] == "conflict"
    await console.command(session, {"kind": "interrupt"})


async def test_a_message_has_pictures_and_files(console: ConsoleClient) -> None:
    session = await console.create()
    form = aiohttp.FormData()
    form.add_field("file", b"some text", filename="notes.txt", content_type="text/plain")
    file = await console.call("POST", "/files", status=201, data=form)
    assert (file["kind"], file["name"], file["size"]) == ("file", "notes.txt", 9)
    picture = {"kind": "image", "url": "data:image/png;base64,AAAA"}
    content = [{"kind": "text", "text": "look"}, picture, file]
    await console.command(session, {"kind": "send_message", "content": content})
    records = await ended(console, session, 1)
    assert records[0]["event"]["command"]["content"] == content
    async with console.asks("GET", f"/files/{file['file_id']}") as answer:
        assert await answer.read() == b"some text"
        assert answer.headers["Content-Disposition"].startswith("attachment")


async def test_the_files_of_others_do_not_exist(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys") as served:
        ann, bob = [ConsoleClient(served, await served.gateway.keys.add(name)) for name in ("ann", "bob")]
        form = aiohttp.FormData()
        form.add_field("file", b"hers", filename="a.txt")
        file = await ann.call("POST", "/files", status=201, data=form)
        await bob.error("GET", f"/files/{file['file_id']}", 404)
        session = await bob.create()
        body = {"commands": [{"kind": "send_message", "content": [file]}]}
        await bob.error("POST", f"/sessions/{session}/commands", 404, body)


@pytest.mark.parametrize("commands", [
    [], None, {}, [{}], [{"kind": "nothing"}], [{"kind": "send_message"}], [{"kind": "send_message", "content": 5}],
    [{"kind": "send_message", "content": [{"kind": "tool_use", "call": {"call_id": "c", "name": "n"}}]}],
    [{"kind": "send_message", "content": [{"kind": "image", "url": "http://127.0.0.1/x"}]}],
    [{"kind": "send_message", "content": [{"kind": "file", "name": "x", "url": "file:///etc/passwd"}]}],
    [{"kind": "send_message", "content": "x", "results": [{"role": "tool", "content": "y"}]}],
    [{"kind": "configure", "settings": {}}], [{"kind": "custom", "name": "x"}], [{"kind": "interrupt"}] * 65,
    [{"kind": "answer_question", "request_id": 5}],
    [{"kind": "decide_permission", "request_id": "r", "granted": "yes"}],
])
async def test_a_wrong_command_is_refused_and_nothing_happens(console: ConsoleClient, commands: Any) -> None:
    session = await console.create()
    error = await console.error("POST", f"/sessions/{session}/commands", 400, {"commands": commands})
    assert error["code"] == "invalid"
    assert (await console.get(f"/sessions/{session}"))["head"] == 1


@pytest.mark.parametrize("text", [
    "<img src=x onerror=alert(1)>", "javascript:alert(1)", "\u202egnp.exe", "a\0b\x1b[31m",
])
async def test_what_people_write_is_carried_as_it_is(console: ConsoleClient, text: str) -> None:
    session = await console.create(title=text)
    records = await console.talk(session, text)
    accepted = next(record for record in records if record["name"] == "input.accepted")
    assert accepted["event"]["command"]["content"] == text
    assert (await console.get("/sessions"))["sessions"][0]["title"] == text


async def test_a_long_message_arrives_whole(console: ConsoleClient) -> None:
    session, text = await console.create(), "word " * 80_000
    await console.command(session, {"kind": "send_message", "content": f"/fail-start {text}"})
    await ended(console, session, 1)
    page = await console.get(f"/sessions/{session}/records")
    assert len(page["records"][1]["event"]["command"]["content"]) >= 400_000
    assert len((await console.get("/sessions"))["sessions"][0]["preview"]) <= 120


async def test_the_directives_of_an_agent_are_offered(console: ConsoleClient) -> None:
    [agent] = (await console.get("/server"))["agents"]
    assert [one["name"] for one in agent["directives"]] == [f"/{name}" for name in HANDLERS]
    assert len(DEMO_CARD.directives) == len(HANDLERS)
