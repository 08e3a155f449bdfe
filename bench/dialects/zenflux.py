"""ZenFlux clients that work a server all day, and those that read a session again."""

import json
from typing import Any

import aiohttp

from bench import soak_clients
from bench.dialects import Replay, Stream, Visit
from bench.measure import BenchFailure
from bench.replay_client import ReplayClient
from bench.soak_clients import MESSAGES, TURNS_PER_SESSION, SoakClients
from bench.stored_sessions import RARE, StoredSession
from bench.websocket_bytes import json_frame, upgrade


async def _talk(clients: SoakClients) -> None:
    """Runs on a socket: told to the end, aborted, or left and resumed on another socket."""
    async with clients.http.ws_connect(f"{clients.address}/api/v1/ws/chat") as ws:
        for number in range(TURNS_PER_SESSION):
            aborts = number == 2
            words = "/slow 1000" if aborts else clients.random.choice(MESSAGES)
            run = await _ask(ws, "chat.send", message=words, user_id="local")
            if aborts:
                await _ask(ws, "chat.abort", session_id=run)
                clients.tally.interrupts += 1
            await _finish(ws)
            clients.tally.turn("zenflux")
        run = await _ask(ws, "chat.send", message="/slow 5", user_id="local")
    async with clients.http.ws_connect(f"{clients.address}/api/v1/ws/chat") as ws:
        await _ask(ws, "session.resume", session_id=run)
        await _finish(ws)
    clients.tally.returns += 1
    clients.tally.turn("zenflux")


async def _ask(ws: aiohttp.ClientWebSocketResponse, method: str, **params: Any) -> str:
    await ws.send_json({"type": "req", "id": method, "method": method, "params": params})
    while (said := await ws.receive_json(timeout=soak_clients.TURN_SECONDS)).get("id") != method:
        pass
    if not said["ok"]:
        raise BenchFailure(f"{method} was refused: {said['error']}")
    return str(said["payload"]["session_id"])


async def _finish(ws: aiohttp.ClientWebSocketResponse) -> None:
    while (await ws.receive_json(timeout=soak_clients.TURN_SECONDS)).get("event") != "session_end":
        pass


VISITS = {"zenflux": Visit(_talk, workers=2)}
LISTS = ("/api/v1/conversations?user_id=local&limit=20",)
FILTERS = {
    "zenflux, no such user": "/api/v1/conversations?user_id=nobody&limit=20",
    "zenflux, search of two Han characters": f"/api/v1/conversations/search?q={RARE[:2]}&limit=20",
    "zenflux, search of what none has": "/api/v1/conversations/search?q=nothing like it&limit=20",
}


async def _stream(client: ReplayClient, session: StoredSession, place: str) -> int:
    """The run over a WebSocket, after an event that the client has had."""
    numbers = list[int]()
    after = client.cursor(session, "zenflux", place)
    async with client.http.ws_connect(f"{client.address}/api/v1/ws/chat", max_msg_size=0) as ws:
        params = {"session_id": session.last_turn, "after_seq": after}
        await ws.send_json({"type": "req", "id": "1", "method": "session.resume", "params": params})
        while '"session_end"' not in (frame := await ws.receive_str()):
            if '"ok":false' in frame:
                raise BenchFailure(f"session.resume was refused: {frame[:200]}")
            numbers.append(json.loads(frame).get("seq") or 0)
    if place == "zero":
        client.learn(session, "zenflux", numbers)
    return len(numbers)


async def _messages(client: ReplayClient, session: StoredSession, place: str) -> int:
    """Pages of 200 messages."""
    total = 2 * len(session.turns)
    offset, count = {"zero": 0, "middle": total // 2, "end": total - 2}[place], 0
    while offset < total:
        page = await client.get(f"/api/v1/conversations/{session.session_id}/messages?limit=200&offset={offset}")
        count += page.count(b'"role"')
        offset += 200
    return count


REPLAYS = (Replay("zenflux WebSocket", _stream, one_turn=True), Replay("zenflux message pages", _messages))


async def _read(http: aiohttp.ClientSession, address: str, message: str) -> int:
    """A run over a WebSocket."""
    deltas = 0
    async with http.ws_connect(f"{address}/api/v1/ws/chat") as ws:
        await ws.send_json({"type": "req", "id": "1", "method": "chat.send",
                            "params": {"message": message, "user_id": "local"}})
        while '"session_end"' not in (frame := await ws.receive_str()):
            deltas += '"content_delta"' in frame
    return deltas


STREAM = Stream("ZenFlux WebSocket", _read, aim=1.5)


def watch(session: str, turn: str) -> list[bytes]:
    params = {"session_id": turn, "after_seq": 0}
    return [upgrade("/api/v1/ws/chat"),
            json_frame({"type": "req", "id": "1", "method": "session.resume", "params": params})]
