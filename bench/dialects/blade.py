"""Blade clients that work a server all day."""

import asyncio
from typing import Any

import socketio  # type: ignore[import-untyped]

from bench import soak_clients
from bench.dialects import Visit
from bench.soak_clients import MESSAGES, SoakClients


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
