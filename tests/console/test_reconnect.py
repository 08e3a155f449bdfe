"""Reconnect here: the request that is shown for each dialect gets exactly what is shown beside it."""

import asyncio
import shlex

import orjson
import pytest
import socketio

from tests.support.console_client import ConsoleClient
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.gateway_server import until

TALK = "/think /tool clock hello"
RESUMABLE = [name for name in DIALECTS if dialect(name).resume_requests]


async def read(console: ConsoleClient, command: str, until: str) -> str:
    """What curl gets of a stream, up to a text."""
    words = shlex.split(command)
    assert words[:1] == ["curl"] and words[1] in ("-s", "-sN")
    headers = dict(word.split(": ", 1) for word in words if ": " in word)
    found = ""
    async with asyncio.timeout(60), console.served.http.get(words[2], headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        async for chunk in answer.content.iter_any():
            found += chunk.decode()
            if until in found:
                return found
    return found


@pytest.mark.parametrize("name", RESUMABLE)
async def test_a_request_that_is_shown_gets_what_is_shown(console: ConsoleClient, name: str) -> None:
    session = await console.create()
    records = await console.talk(session, TALK)
    for seq in (4, len(records) // 2, len(records) - 2):
        shown = await console.get(f"/sessions/{session}/reconnect?seq={seq}")
        [one] = [one for one in shown["dialects"] if one["dialect"] == name]
        frames = [frame for item in one["gets"]["items"] for frame in item["frames"]]
        assert frames and one["requests"] and one["note"] is None
        first = one["requests"][0]
        if first["kind"] != "curl":
            continue
        stream = await read(console, first["text"], frames[-1]["text"][-40:])
        bodies = [frame["text"].partition("event: ")[2] for frame in frames]
        assert [part.partition("event: ")[2] + "\n\n" for part in stream.split("\n\n") if "event: " in part] == bodies


async def test_a_packet_of_socketio_is_what_a_client_sends(console: ConsoleClient) -> None:
    session = await console.create()
    await console.talk(session, TALK)
    shown = {one["dialect"]: one for one in (await console.get(f"/sessions/{session}/reconnect?seq=10"))["dialects"]}
    [request] = [one for place in shown.values() for one in place["requests"] if one["kind"] == "socketio"]
    name, body = orjson.loads(request["text"].removeprefix("42"))
    frames = [frame for item in shown["blade"]["gets"]["items"] for frame in item["frames"]]
    heard = list[list[object]]()
    client = socketio.AsyncClient(reconnection=False)
    client.on("*", lambda event, payload: heard.append([event, payload]))
    await client.connect(console.served.address, wait_timeout=60)
    assert (await client.call(name, body, timeout=60))["status"] == "ok"
    await until(lambda: len(heard) >= len(frames))
    await client.disconnect()
    await client.shutdown()
    assert heard == [orjson.loads(frame["text"].removeprefix("42")) for frame in frames]


async def test_a_frame_of_a_websocket_is_what_a_client_sends(console: ConsoleClient) -> None:
    session = await console.create()
    await console.talk(session, TALK)
    shown = {one["dialect"]: one for one in (await console.get(f"/sessions/{session}/reconnect?seq=10"))["dialects"]}
    [(name, request)] = [(place, one) for place, found in shown.items() for one in found["requests"]
                         if one["kind"] == "websocket"]
    texts = [frame["text"] for item in shown[name]["gets"]["items"] for frame in item["frames"]]
    async with asyncio.timeout(60), console.served.http.ws_connect(
        console.served.url("/api/v1/ws/chat")
    ) as socket:
        await socket.send_str(request["text"])
        answers = [(await socket.receive()).data for _ in range(len(texts) + 1)]
    assert '"streaming"' in answers[0]
    assert [orjson.loads(text) for text in answers[1:]] == [orjson.loads(text) for text in texts]


async def test_the_exchange_shows_what_was_sent(console: ConsoleClient) -> None:
    session = await console.create()
    records = await console.talk(session, "it's \"quoted\" $HOME")
    shown = await console.get(f"/sessions/{session}/exchange?seq={len(records)}")
    assert shown["command"]["content"] == "it's \"quoted\" $HOME"
    able = {name for name in DIALECTS if dialect(name).command_requests}
    assert {one["dialect"] for one in shown["requests"]} == able
    for one in shown["requests"]:
        if one["kind"] == "curl":
            words = shlex.split(one["text"])
            body = orjson.loads(words[words.index("-d") + 1])
            assert "it's \"quoted\" $HOME" in orjson.dumps(body).decode().replace('\\"', '"')
    assert (await console.get(f"/sessions/{session}/exchange?seq=1"))["command"] is None


@pytest.mark.parametrize("query", ["", "?seq=0", "?seq=x", "?seq=99", "?seq=1&x=1"])
async def test_a_place_that_is_none_is_refused(console: ConsoleClient, query: str) -> None:
    session = await console.create()
    for path in ("reconnect", "exchange"):
        assert (await console.error("GET", f"/sessions/{session}/{path}{query}", 400))["code"] == "invalid"


