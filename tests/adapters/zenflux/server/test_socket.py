"""The chat socket, over a real connection: requests, responses, runs one after the other, and whatever goes wrong."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from adapters.zenflux.server import views
from gateway.http.websocket import OPEN_SOCKETS
from tests.support.dialect_tables import table
from tests.support.dialects.zenflux.client import Chat, talking
from tests.support.gateway_server import until


async def test_a_run_is_told_from_its_start_to_its_end(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("/think /tool clock hello")
        assert [block["type"] for block in run.blocks] == ["thinking", "tool_use", "tool_result", "text"]
        assert run.words("text")[0].endswith("You said: hello")
        assert run.status == "completed"
        assert len(run.messages) == 2
        assert chat.frames[0]["type"] == "res"
        assert chat.frames[0]["payload"]["status"] == "streaming"
        assert chat.frames[0]["payload"]["session_id"] == run.session_id


async def test_one_message_per_run_where_the_settings_say_so(tmp_path: Path) -> None:
    async with talking(tmp_path, zenflux={"multi_message": False}) as client, client.chat() as chat:
        run = await chat.run("/tool clock hello")
        assert len(run.messages) == 1
        stored = await client.call("GET", f"/conversations/{run.conversation_id}/messages")
        assert [m["id"] for m in stored["messages"][1:]] == [run.messages[0].id]


async def test_a_connection_is_used_again_and_the_conversation_goes_on(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        first = await chat.run("one")
        second = await chat.run("two", conversation_id=first.conversation_id)
        third = await chat.run("three", conversation_id="")
        assert first.conversation_id == second.conversation_id != third.conversation_id
        assert len({first.session_id, second.session_id, third.session_id}) == 3


async def test_several_connections_talk_at_once(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        async def talk(number: int) -> str:
            async with client.chat() as chat:
                return (await chat.run(f"/slow 3 number {number}")).words("text")[-1]

        said = await asyncio.gather(*(talk(number) for number in range(10)))
        assert [f"number {number}" in text for number, text in enumerate(said)] == [True] * 10


async def test_an_agent_that_tells_its_bill_is_not_billed_again(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        for words, totals in (("/annotate hello", 1), ("/annotate /tool clock hello", 2), ("/tool clock hello", 1)):
            chat.events.clear()
            run = await chat.run(words)
            billed = [event["data"] for event in chat.events if event["data"].get("type") == "billing"]
            assert len({bill["content"]["total_tokens"] for bill in billed}) == len(billed) == totals, words
            last = {name: count for name, count in billed[-1]["content"].items() if name != "latency"}
            told = views.run_body(table("zenflux"), await client.served.gateway.sessions.find_by_id("", run.session_id),
                                    run.session_id)["usage"]
            assert last.items() <= told.items(), words


async def test_words_are_merged_and_none_is_lost(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("/slow 20")
        assert run.words("text")[0] == "".join(f"{number} " for number in range(1, 21))
        assert run.deltas <= 2 + 20 * 0.06 / 0.15 + 4
        burst = await chat.run("/burst 2000")
        assert "word " * 2000 in burst.words("text")[0]
        assert burst.deltas < 40


async def test_words_come_when_they_are_due_though_nothing_follows(tmp_path: Path) -> None:
    async with talking(tmp_path, zenflux={"throttle_ms": 60}) as client, client.chat() as chat:
        begun = await chat.send("/slow 2 /ask")
        while not any("2 " in event["data"].get("delta", "") for event in chat.events
                      if event["type"] == "content_delta"):
            await chat.next()
        await chat.ask("chat.abort", session_id=begun["session_id"])


async def test_without_streaming_each_block_is_one_delta(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("/think /burst 500", stream=False)
        assert run.deltas == len(run.blocks)


async def test_null_is_as_good_as_nothing(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("conversation_id", "agent_id", "stream", "background_tasks", "files", "variables"))
    async with talking(tmp_path) as client, client.chat() as chat:
        assert (await chat.run("/slow 3", **nothing)).status == "completed"
        assert sum(envelope["type"] == "content_delta" for envelope in chat.events) > 2


async def test_half_of_a_character_is_told_as_one_that_is_missing(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("cut \ud83d", stream=False)
        assert run.words("text") == ["You said: cut \ufffd"]


async def test_a_second_message_stops_the_run_before_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        first = await chat.send("/slow 400")
        await chat.until("content_start")
        second = await chat.send("hello", conversation_id=first["conversation_id"])
        stopped, done = await chat.over(first["session_id"]), await chat.over(second["session_id"])
        assert stopped.status == "cancelled"
        assert stopped.other("session_stopped")[0]["reason"] == "user_requested"
        assert done.words("text")[0] == "You said: hello"
        order = [frame.get("event") or frame["type"] for frame in chat.frames]
        assert order.index("session_stopped") < len(order) - 1 - order[::-1].index("res")


async def test_a_message_waits_for_a_run_that_has_said_message_stop(tmp_path: Path) -> None:
    """A client may take message_stop for the end, as documented, and speak though the run goes on."""
    async with talking(tmp_path) as client, client.chat() as chat:
        first = await chat.send("/tool clock /slow 20 one")
        await chat.until("message_stop")
        assert not any(event["type"] == "session_end" for event in chat.events)
        await chat.ws.send_json({"type": "ping"})
        second = await chat.send("two", conversation_id=first["conversation_id"])
        done = await chat.over(first["session_id"])
        assert done.status == "completed"
        assert "one" in done.words("text")[-1]
        assert (await chat.over(second["session_id"])).words("text") == ["You said: two"]
        order = [frame["type"] if frame["type"] != "event" else frame["event"] for frame in chat.frames]
        assert order.index("pong") < order.index("session_end") < len(order) - 1 - order[::-1].index("res")


async def test_a_run_that_is_waited_for_can_be_stopped(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        first = await chat.send("/tool clock /slow 200 one")
        await chat.until("message_stop")
        await chat.ws.send_json({"type": "req", "id": "waits", "method": "chat.send", "params": {
            "message": "two", "user_id": "local", "conversation_id": first["conversation_id"]}})
        assert (await chat.ask("chat.abort", session_id=first["session_id"]))["payload"]["status"] == "stopped"
        assert (await chat.over(first["session_id"])).status == "cancelled"
        while "waits" not in [response["id"] for response in chat.responses]:
            await chat.next()
        assert (await chat.over(chat.responses[-1]["payload"]["session_id"])).words("text") == ["You said: two"]


async def test_a_run_is_not_waited_for_without_end(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        first = await chat.send("/tool clock /slow 2000 one")
        await chat.until("message_stop")
        second = await chat.send("two", conversation_id=first["conversation_id"])
        assert (await chat.over(first["session_id"])).status == "cancelled"
        assert (await chat.over(second["session_id"])).words("text") == ["You said: two"]


async def test_a_client_that_leaves_takes_what_waits_with_it(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        async with client.chat() as chat:
            first = await chat.send("/tool clock /slow 20 one")
            await chat.until("message_stop")
            await chat.ws.send_json({"type": "req", "id": "waits", "method": "chat.send", "params": {
                "message": "two", "user_id": "local", "conversation_id": first["conversation_id"]}})
            await chat.ws.send_json({"type": "ping"})
            while (await chat.next())["type"] != "pong":
                pass
        path = f"/conversations/{first['conversation_id']}/messages"
        await until(lambda: not client.served.gateway.table.turn_count)
        assert (await client.call("GET", f"/session/{first['session_id']}"))["active"] is False
        said = (await client.call("GET", path))["messages"]
        assert [one["content"] for one in said if one["role"] == "user"] == ["/tool clock /slow 20 one"]


async def test_a_second_message_that_is_refused_stops_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        first = await chat.send("/slow 5")
        response = await chat.ask("chat.send", message="x", user_id="local", agent_id="nobody")
        assert response["error"]["code"] == "AGENT_NOT_FOUND"
        assert (await chat.over(first["session_id"])).status == "completed"


async def test_a_conversation_that_is_busy_elsewhere(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as one, client.chat() as other:
        begun = await one.send("/slow 400")
        response = await other.ask(
            "chat.send", message="x", user_id="local", conversation_id=begun["conversation_id"])
        assert response["error"]["code"] == "SESSION_BUSY"
        await one.ask("chat.abort", session_id=begun["session_id"])


# -- abort ------------------------------------------------------------------------------------------------------------

async def test_an_abort_is_answered_before_its_effects_are_told(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/slow 400")
        await chat.until("content_start")
        response = await chat.ask("chat.abort", session_id=begun["session_id"])
        assert response["payload"]["session_id"] == begun["session_id"]
        assert response["payload"]["status"] == "stopped"
        assert response["payload"]["stopped_at"]
        assert not any(event["type"] == "session_stopped" for event in chat.events)
        run = await chat.over(begun["session_id"])
        assert [event["type"] for event in chat.events[-5:]] == [
            "message_delta", "message_delta", "message_stop", "session_stopped", "session_end"]
        assert run.status == "cancelled"
        again = await chat.ask("chat.abort", session_id=begun["session_id"])
        assert again["ok"], "a run that is over stays so"


@pytest.mark.parametrize(("params", "code"), [
    ({}, "VALIDATION_ERROR"), ({"session_id": ""}, "VALIDATION_ERROR"), ({"session_id": 5}, "VALIDATION_ERROR"),
    ({"session_id": None}, "VALIDATION_ERROR"), ({"session_id": "turn_nope"}, "SESSION_NOT_FOUND"),
    ({"session_id": "../../etc"}, "SESSION_NOT_FOUND"),
])
async def test_an_abort_of_nothing(tmp_path: Path, params: dict[str, Any], code: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        response = await chat.ask("chat.abort", **params)
        assert not response["ok"]
        assert response["error"]["code"] == code


# -- what cannot be understood ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("frame", [
    "", "nonsense", "{", "[]", "[1]", "5", "null", '"req"', "{}", '{"type":null}', '{"type":5}', '{"type":"event"}',
    '{"type":["req"]}', '{"type":"REQ","id":"1","method":"chat.send"}', "\ud7ff", "{" * 1000, '{"type":"res"}',
])
async def test_a_frame_that_cannot_be_understood_is_passed_over(tmp_path: Path, frame: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        await chat.ws.send_str(frame)
        await chat.ws.send_bytes(frame.encode() + b"\xff\xfe")
        await chat.ws.send_json({"type": "ping"})
        assert (await chat.next())["type"] == "pong"
        assert (await chat.run("still here")).status == "completed"


DEEP, NAN = '{"a":' * 2000 + "1" + "}" * 2000, "[NaN]"


@pytest.mark.parametrize("params", [DEEP, NAN, "[" * 2000, "Infinity", '{"message": "hi"', "tru"])
@pytest.mark.parametrize("frame", [
    '{"type":"req","id":ID,"method":"chat.send","params":PARAMS}',
    ' { "method" : "chat.send", "other": {"id": "none", "type": []}, "id" : ID, "type" : "req", "params" : PARAMS }',
])
async def test_a_request_that_cannot_be_read_is_refused_by_its_id(tmp_path: Path, frame: str, params: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        for request_id in ("a\"b", 7):
            await chat.ws.send_str(frame.replace("ID", orjson.dumps(request_id).decode()).replace("PARAMS", params))
            response = await chat.next()
            assert (response["type"], response["id"], response["ok"]) == ("res", request_id, False)
            assert response["error"]["code"] == "VALIDATION_ERROR"
            words = "levels deep; at most 150" if params in (DEEP, "[" * 2000) else "not JSON"
            assert words in response["error"]["message"]
        assert (await chat.run("still here")).status == "completed"


async def test_a_frame_that_is_too_large_is_told_so(tmp_path: Path) -> None:
    async with talking(tmp_path, limits={"body_bytes": 100_000}) as client, client.chat() as chat:
        await chat.ws.send_str("x" * 1_000_000)
        said = await chat.ws.receive()
        assert (said.type, said.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)
        assert said.extra == "a frame may have less than 100000 bytes"


@pytest.mark.parametrize(("said", "code"), [
    ({"method": "chat.nope"}, "METHOD_NOT_FOUND"), ({}, "METHOD_NOT_FOUND"), ({"method": 5}, "METHOD_NOT_FOUND"),
    ({"method": ["chat.send"]}, "METHOD_NOT_FOUND"), ({"method": None}, "METHOD_NOT_FOUND"),
    ({"method": "chat.send"}, "VALIDATION_ERROR"), ({"method": "chat.send", "params": []}, "VALIDATION_ERROR"),
    ({"method": "chat.send", "params": None}, "VALIDATION_ERROR"),
    ({"method": "chat.abort", "params": "x"}, "VALIDATION_ERROR"),
])
async def test_a_request_that_is_wrong_is_refused(tmp_path: Path, said: dict[str, Any], code: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        for identified in ({"id": "7"}, {}, {"id": None}, {"id": ["x"]}, {"id": ""}):
            await chat.ws.send_json({"type": "req", **identified, **said})
            response = await chat.next()
            assert response["type"] == "res"
            assert not response["ok"]
            assert response["error"]["code"] == code
            assert isinstance(response["id"], str)
            assert response["id"] == "7" or "7" not in identified.values()


CLOSED = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
GOOD = {"message": "hi", "user_id": "local"}


@pytest.mark.parametrize("wrong", [
    {"message": None}, {"message": 5}, {"message": ["hi"]}, {"message": {}}, {"message": ""}, {"user_id": None},
    {"user_id": 5}, {"user_id": ""}, {"user_id": []}, {"conversation_id": 5}, {"conversation_id": {}},
    {"agent_id": 5}, {"agent_id": ["demo"]}, {"stream": "yes"}, {"stream": 1}, {"stream": {}},
    {"background_tasks": "title_generation"}, {"background_tasks": [5]}, {"background_tasks": {}},
    {"files": "x"}, {"files": ["x"]}, {"files": {}}, {"files": [{"file_size": "big"}]}, {"files": [{"file_url": 5}]},
    {"files": [{"file_size": -1}]}, {"files": [{}]}, {"variables": []}, {"variables": "x"}, {"variables": 5},
])
async def test_a_parameter_of_the_wrong_kind_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        response = await chat.ask("chat.send", **{**GOOD, **wrong})
        assert not response["ok"], response
        assert response["error"]["code"] == "VALIDATION_ERROR"
        assert next(iter(wrong)) in response["error"]["message"]
        assert (await chat.run("still here")).status == "completed"


@pytest.mark.parametrize("missing", ["message", "user_id"])
async def test_a_parameter_that_is_missing_is_refused(tmp_path: Path, missing: str) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        response = await chat.ask("chat.send", **{key: value for key, value in GOOD.items() if key != missing})
        assert response["error"]["code"] == "VALIDATION_ERROR"


async def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        response = await chat.ask("chat.send", **GOOD, conversation_id="nope")
        assert response["error"]["code"] == "CONVERSATION_NOT_FOUND"
        response = await chat.ask("chat.send", **GOOD, agent_id="nope")
        assert response["error"]["code"] == "AGENT_NOT_FOUND"
        response = await chat.ask("chat.send", **GOOD, files=[{"file_id": "file_nope", "file_name": "x"}])
        assert not response["ok"]


async def test_a_large_message_is_taken_and_a_larger_one_hangs_up(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("x" * 5_000_000, stream=False)
        assert len(run.words("text")[0]) > 5_000_000
        with suppress(ConnectionError):
            await chat.ws.send_str("y" * 11_000_000)
        assert (await chat.ws.receive(timeout=60)).type in CLOSED


async def test_an_id_that_is_a_number_is_given_back(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        await chat.ws.send_json({"type": "req", "id": 7, "method": "nope"})
        assert (await chat.next())["id"] == 7


# -- the line itself --------------------------------------------------------------------------------------------------

async def test_the_server_ticks_and_answers_pings(tmp_path: Path) -> None:
    async with talking(tmp_path, zenflux={"tick_seconds": 0.05}) as client, client.chat() as chat:
        tick = await chat.next()
        assert tick == {"type": "event", "event": "tick", "payload": {"ts": tick["payload"]["ts"]}, "seq": 0}
        assert isinstance(tick["payload"]["ts"], int)
        await chat.ws.send_json({"type": "ping"})
        while (pong := await chat.next())["type"] != "pong":
            pass
        assert set(pong) == {"type", "ts"}


async def test_a_client_that_leaves_does_not_stop_its_run(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        async with client.chat() as chat:
            begun = await chat.send("/slow 4")
        view = await client.served.gateway.sessions.get("", begun["conversation_id"])
        await until(lambda: view.turn_id is None)
        assert view.ended is not None
        assert view.ended.outcome == "completed"


async def test_a_client_that_leaves_stops_its_run_where_the_settings_say_so(tmp_path: Path) -> None:
    async with talking(tmp_path, on_disconnect="cancel") as client:
        async with client.chat() as chat:
            begun = await chat.send("/slow 400")
            await chat.until("content_start")
        view = await client.served.gateway.sessions.get("", begun["conversation_id"])
        await until(lambda: view.turn_id is None)
        assert view.ended is not None
        assert view.ended.outcome == "interrupted"


async def test_a_client_that_takes_nothing_is_cut_and_its_run_goes_on(tmp_path: Path) -> None:
    async with talking(tmp_path, limits={"send_seconds": 0.3}) as client:
        host, port = client.served.address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1024)
        key = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + "A" * 22
        writer.write(f"GET /api/v1/ws/chat HTTP/1.1\r\nHost: {host}\r\n{key}==\r\n\r\n".encode())
        body = orjson.dumps({"type": "req", "id": "1", "method": "chat.send",
                             "params": {**GOOD, "message": "x" * 9_000_000, "stream": False}})
        writer.write(bytes([0x81, 0xFF]) + len(body).to_bytes(8, "big") + bytes(4) + body)
        await writer.drain()
        gateway = client.served.gateway
        await until(lambda: gateway.hub.subscribers)
        await until(lambda: not gateway.hub.subscribers)
        await until(lambda: not gateway.web[OPEN_SOCKETS])
        assert not gateway.table.turn_count
        writer.close()


async def test_a_thousand_clients_that_say_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as many:
            url = client.served.url("/api/v1/ws/chat")
            idle = await asyncio.gather(*(many.ws_connect(url) for _ in range(1000)))
            async with client.chat() as chat:
                assert (await chat.run("hello")).status == "completed"
            await idle[-1].send_json({"type": "ping"})
            assert (await idle[-1].receive_json(timeout=60))["type"] == "pong"
            await asyncio.gather(*(ws.close() for ws in idle))


@pytest.mark.parametrize(("origin", "status"), [
    ("http://localhost:5173", 101), ("tauri://localhost", 101), ("http://tauri.localhost", 101),
    ("https://evil.example", 403), ("null", 403),
])
async def test_pages_of_other_sites_open_no_socket(tmp_path: Path, origin: str, status: int) -> None:
    async with talking(tmp_path) as client:
        url = client.served.url("/api/v1/ws/chat")
        try:
            async with client.served.http.ws_connect(url, origin=origin) as ws:
                assert await Chat(ws).run("hello")
            assert status == 101
        except aiohttp.WSServerHandshakeError as error:
            assert error.status == status


# -- what the agent does ----------------------------------------------------------------------------------------------

async def test_a_run_that_fails(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        run = await chat.run("/fail")
        assert run.status == "failed"
        assert run.other("error")[0]["error"]["type"] == "internal_error"
        assert run.words("text") == ["I am about to "]
        early = await chat.run("/fail-start")
        assert early.status == "failed"
        assert early.messages == []


async def test_a_title_is_the_first_words_where_the_client_asks_for_one(tmp_path: Path) -> None:
    async with talking(tmp_path, zenflux={"title_length": 10}) as client, client.chat() as chat:
        tasks = ["title_generation", "recommended_questions"]
        run = await chat.run("/slow 1 a long  first message", background_tasks=tasks)
        assert run.other("conversation_delta") == [{"conversation_id": run.conversation_id, "title": "/slow 1 a "}]
        named = await chat.run("/title The trip", conversation_id=run.conversation_id, background_tasks=tasks)
        assert named.other("conversation_delta")[0]["title"] == "The trip"


@pytest.mark.parametrize("title", [None, "", "新对话"])
async def test_a_run_that_is_over_in_no_time_tells_its_title_too(tmp_path: Path, title: str | None) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        query = {"user_id": "local"} if title is None else {"user_id": "local", "title": title}
        made = await client.call("POST", "/conversations", params=query)
        assert made["title"] == "新对话"
        run = await chat.run("hello", conversation_id=made["id"], background_tasks=["title_generation"])
        assert run.other("conversation_delta") == [{"conversation_id": made["id"], "title": "hello"}]
        again = await chat.run("hello again", conversation_id=made["id"], background_tasks=["title_generation"])
        assert again.other("conversation_delta") == []


async def test_a_message_that_is_refused_gives_no_title(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat, client.chat() as other:
        begun = await chat.send("/slow 400")
        refused = await other.ask(
            "chat.send", message="hello", user_id="local", conversation_id=begun["conversation_id"],
            background_tasks=["title_generation"],
        )
        assert refused["error"]["code"] == "SESSION_BUSY"
        assert (await client.call("GET", f"/conversations/{begun['conversation_id']}"))["title"] == "新对话"
        await chat.ask("chat.abort", session_id=begun["session_id"])


async def test_every_directive_is_told_in_order(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        for directive in ("/annotate", "/bridge", "/ui", "/image", "/plan", "/compact x", "/fork", "/refuse",
                          "/max-tokens", "/json", "/tool search", "/think /burst 10 /tool clock /image"):
            run = await chat.run(directive)
            assert run.status == "completed", directive


async def test_an_agent_is_chosen_message_by_message(tmp_path: Path) -> None:
    agents = {"first": {"backend": "demo"}, "second": {"backend": "demo", "model": "two"}}
    async with talking(tmp_path, agents=agents) as client, client.chat() as chat:
        made = await client.call("POST", "/conversations", params={"user_id": "local", "title": "T"})
        assert made["agent_id"] == "first"
        await chat.run("hello", conversation_id=made["id"], agent_id="second")
        assert (await client.call("GET", f"/conversations/{made['id']}"))["agent_id"] == "second"


async def test_a_conversation_deleted_in_the_middle_of_a_run(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat:
        begun = await chat.send("/slow 400")
        await chat.until("content_delta")
        await client.call("DELETE", f"/conversations/{begun['conversation_id']}")
        assert (await chat.over(begun["session_id"])).status == "cancelled"
        assert (await chat.run("hello")).status == "completed"
