"""A dialect that is a table alone over a WebSocket: frames of one session go out, messages come in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.support.plain_dialect import PlainClient, PlainFolder


def over_websocket(table: dict[str, Any]) -> None:
    table["transport"] = "websocket"
    table["envelopes"] = {"default": {"type": "$wire", "seq": "$seq", "...": "$body"}}
    routes = table["routes"]
    del routes["POST /sessions/{session}/messages"], routes["DELETE /sessions/{session}/turn"]
    del routes["GET /sessions/{session}/events"]
    table["inputs"] = {"message.sent": {"command": "send_message", "wire": {"type": "say", "text": "$content"}},
                       "turn.stopped": {"command": "interrupt", "wire": {"type": "stop"}}}
    table["objects"]["alive"] = {"type": "alive"}
    routes["GET /sessions/{session}/socket"] = {
        "stream": "session", "input": ["message.sent", "turn.stopped"], "ping": "alive"}


@asynccontextmanager
async def connected(nova: PlainClient, session: str, after: int = 0) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with nova.http.ws_connect(nova.url(f"/sessions/{session}/socket?after={after}")) as ws:
        yield ws


async def until_ended(ws: aiohttp.ClientWebSocketResponse) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while not frames or frames[-1]["type"] != "ended":
        frames.append(await ws.receive_json())
    return [frame for frame in frames if frame["type"] != "alive"]


async def test_a_message_is_answered_on_the_socket(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving(over_websocket) as nova, connected(nova, await nova.session()) as ws:
        await ws.send_json({"type": "say", "text": "hello"})
        frames = await until_ended(ws)
        assert [frame["type"] for frame in frames] == ["started", *["text"] * (len(frames) - 2), "ended"]
        assert "".join(frame["delta"] for frame in frames[1:-1]) == "You said: hello"


async def test_a_client_that_comes_back_gets_the_rest(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving(over_websocket) as nova:
        session = await nova.session()
        async with connected(nova, session) as ws:
            await ws.send_json({"type": "say", "text": "hello"})
            live = await until_ended(ws)
        for place, frame in enumerate(live[:-1], 1):
            async with connected(nova, session, frame["seq"]) as ws:
                assert await until_ended(ws) == live[place:]


async def test_a_turn_is_stopped_on_the_socket(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving(over_websocket) as nova, connected(nova, await nova.session()) as ws:
        await ws.send_json({"type": "say", "text": "/slow 500"})
        assert (await ws.receive_json())["type"] == "started"
        await ws.send_json({"type": "stop"})
        assert (await until_ended(ws))[-1]["reason"] == "stopped"


async def test_mistakes_are_answered_in_the_words_of_the_dialect(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving(over_websocket) as nova, connected(nova, await nova.session()) as ws:
        for sent, told in (
            ({"type": "say"}, "text: is missing"),
            ({"type": "shout"}, "the body is none of the messages that this request takes: message.sent, turn.stopped"),
            ({"type": "stop"}, None),
        ):
            await ws.send_json(sent)
            error = (await ws.receive_json())["error"]
            assert told in (None, error["message"])
            assert error["code"] == ("conflict" if told is None else "invalid")
        await ws.send_str("{")
        assert (await ws.receive_json())["error"]["message"].startswith("the body is not JSON")


async def test_a_silent_socket_gets_heartbeats(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving(over_websocket) as nova, connected(nova, await nova.session()) as ws:
        assert await ws.receive_json() == {"type": "alive"}


async def test_other_requests_are_plain_http(plain_folder: PlainFolder) -> None:
    async with plain_folder.serving(over_websocket) as nova:
        session = await nova.session()
        assert (await nova.json("GET", f"/sessions/{session}"))[1]["id"] == session
