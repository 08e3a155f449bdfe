"""Blade clients that work a server all day, and those that read a session again."""

import asyncio
import json
from typing import Any

import aiohttp
import socketio  # type: ignore[import-untyped]

from bench import soak_clients
from bench.dialects import Addition, Replay, Stream, Visit
from bench.replay_client import ReplayClient
from bench.soak_clients import MESSAGES, SoakClients
from bench.stored_sessions import StoredSession
from bench.websocket_bytes import text_frame, upgrade


async def _talk(clients: SoakClients) -> None:
    """A page that chats, loses its connection and subscribes again."""
    made = (await clients.call("POST", "/api/sessions", {"intent": "soak"}))["session_id"]
    last = 0
    for _ in range(2):
        sio, over = socketio.AsyncClient(reconnection=False), asyncio.Event()
        numbers = [last]

        def hear(event: str, payload: Any, numbers: list[int] = numbers, over: asyncio.Event = over) -> None:
            numbers.append(payload.get("stream_sequence") or 0)
            if event == "chat:end":
                over.set()

        sio.on("*", hear)
        await sio.connect(clients.address, wait_timeout=soak_clients.TURN_SECONDS, transports=["websocket"])
        wanted = {"session_id": made, "after_sequence": last, "resume": True}
        await sio.call("session:subscribe", wanted, timeout=soak_clients.TURN_SECONDS)
        for _ in range(2):
            over.clear()
            said = {"session_id": made, "message": clients.random.choice(MESSAGES)}
            await sio.call("chat:send", said, timeout=soak_clients.TURN_SECONDS)
            await asyncio.wait_for(over.wait(), soak_clients.TURN_SECONDS)
            clients.tally.turn("blade")
        last = max(numbers)
        await sio.disconnect()
        await sio.shutdown()
        clients.tally.returns += 1


VISITS = {"blade": Visit(_talk, workers=1)}
LISTS = ("/api/sessions?limit=20", "/api/sessions?limit=20&solution_id=nobodys")
FILTERS = {
    "blade, no such solution": "/api/sessions?limit=20&solution_id=nobodys",
    "blade, a title that one has": "/api/sessions?limit=20&q=Session 7 ",
    "blade, a title that none has": "/api/sessions?limit=20&q=nothing like it",
}


async def _stream(client: ReplayClient, session: StoredSession, place: str) -> int:
    """Socket.IO over a WebSocket, from a number of the stream to the end of the last chat."""
    numbers = list[int]()
    after = client.cursor(session, "blade", place)
    wanted = {"session_id": session.session_id, "resume": True, "after_sequence": after}
    async with client.http.ws_connect(f"{client.address}/socket.io/?EIO=4&transport=websocket", max_msg_size=0) as ws:
        await ws.receive_str()
        await ws.send_str("40")
        await ws.receive_str()
        await ws.send_str("420" + json.dumps(["session:subscribe", wanted]))
        last, chats = client.last(session, "blade"), len(session.turns)
        while last not in numbers[-1:] if last else chats:
            packet = await ws.receive_str()
            if packet == "2":
                await ws.send_str("3")
            elif packet.startswith("42"):
                chats -= packet.startswith('42["chat:end"')
                numbers.append(json.loads(packet[2:])[1].get("stream_sequence") or 0)
    if place == "zero":
        client.learn(session, "blade", numbers)
    return len(numbers)


async def _messages(client: ReplayClient, session: StoredSession, place: str) -> int:
    return (await client.get(f"/api/sessions/{session.session_id}/messages")).count(b'"role"')


async def _poll(client: ReplayClient, session: StoredSession, place: str) -> int:
    """Socket.IO without a WebSocket: one GET after the other, each with the packets that are ready."""
    after = client.cursor(session, "blade", place)
    wanted = {"session_id": session.session_id, "resume": True, "after_sequence": after}
    at, numbers = "/socket.io/?EIO=4&transport=polling", list[int]()
    at += f"&sid={json.loads((await client.get(at))[1:])['sid']}"
    for packet in ("40", "420" + json.dumps(["session:subscribe", wanted])):
        await client.post(at, packet)
    last, chats = client.last(session, "blade"), len(session.turns)
    while last not in numbers[-1:] if last else chats:
        for packet in (await client.get(at)).decode().split("\x1e"):
            if packet.startswith("42"):
                chats -= packet.startswith('42["chat:end"')
                numbers.append(json.loads(packet[2:])[1].get("stream_sequence") or 0)
            elif packet == "2":
                await client.post(at, "3")
    if place == "zero":
        client.learn(session, "blade", numbers)
    return len(numbers)


REPLAYS = (
    Replay("blade Socket.IO", _stream), Replay("blade polling", _poll),
    Replay("blade messages", _messages, from_zero_only=True),
)
ADDITIONS = (
    Addition("memories", "/api/memories", lambda number: {"content": f"The user likes tea number {number}"}, 10_000),
)
SCHEDULE = Addition("schedules", "/api/scheduled-tasks", lambda number: {
    "title": f"Task {number}", "prompt": "hello", "cron": "0 9 * * *"}, 100)


SOCKET = "/socket.io/?EIO=4&transport=websocket"
PATCH = '42["turn:patch"'


def _subscribe(session: str) -> str:
    return "420" + json.dumps(["session:subscribe", {"session_id": session, "resume": True, "after_sequence": 0}])


async def _read(http: aiohttp.ClientSession, address: str, message: str) -> int:
    """A chat over Socket.IO on a WebSocket."""
    async with http.post(f"{address}/api/sessions", json={"intent": "bench"}) as made:
        session, deltas = (await made.json())["session_id"], 0
    async with http.ws_connect(f"{address}{SOCKET}") as ws:
        await ws.receive_str()
        await ws.send_str("40")
        await ws.receive_str()
        await ws.send_str(_subscribe(session))
        await ws.send_str("421" + json.dumps(["chat:send", {"session_id": session, "message": message}]))
        while not (packet := await ws.receive_str()).startswith('42["chat:end"'):
            deltas += packet.startswith(PATCH)
            if packet == "2":
                await ws.send_str("3")
    return deltas


STREAM = Stream("Blade Socket.IO", _read, aim=2.5)


def watch(session: str, turn: str) -> list[bytes]:
    return [upgrade(SOCKET), text_frame("40"), text_frame(_subscribe(session))]
