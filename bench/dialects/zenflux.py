"""ZenFlux clients that work a server all day."""

from typing import Any

import aiohttp

from bench import soak_clients
from bench.dialects import Visit
from bench.measure import BenchFailure
from bench.soak_clients import MESSAGES, TURNS_PER_SESSION, SoakClients


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
