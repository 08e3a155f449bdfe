"""Clients of the soak test: they talk in every dialect, answer, interrupt, reconnect, or read nothing."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aiohttp
import socketio  # type: ignore[import-untyped]

from .measure import BenchFailure

CAS = "/api/v1/cloud/sessions"
NEW_CAS = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}
MESSAGES = (
    "hello", "/think why", "/tool clock", "/burst 50", "/slow 3", "/fork", "/ui", "/title Trip", "/fail", "/compact",
)
TURNS_PER_SESSION = 5
TURN_SECONDS = 30.0
"""A turn that has not ended after so many seconds is a fault of the server."""


@dataclass
class SoakCounts:
    """The counts of what was done so far."""

    turns: int = 0
    asks: int = 0
    interrupts: int = 0
    returns: int = 0
    hangs: int = 0
    by_dialect: dict[str, int] = field(default_factory=dict)

    def turn(self, dialect: str) -> None:
        self.turns += 1
        self.by_dialect[dialect] = self.by_dialect.get(dialect, 0) + 1


class SoakClients:
    """Clients of one server; each method is one visit of one client."""

    def __init__(self, address: str, http: aiohttp.ClientSession, tally: SoakCounts, seed: int = 0) -> None:
        self.address = address
        self.http = http
        self.tally = tally
        self.random = Random(seed)

    def visits(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"aap": self.aap, "cas": self.cas, "zenflux": self.zenflux, "blade": self.blade, "hung": self.hung}

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        async with self.http.request(method, f"{self.address}{path}", json=body) as answer:
            if answer.status >= 400:
                raise BenchFailure(f"{method} {path} was answered {answer.status}: {(await answer.text())[:300]}")
            return await answer.json() if answer.status != 204 else None

    # -- one visit each -------------------------------------------------------------------------------------------

    async def aap(self) -> None:
        """Streamed turns, permissions, and a turn that is read over two connections."""
        made = await self.call("POST", "/aap/sessions", {"agent": {"name": "demo", "tools": [{"name": "calc"}]}})
        turns = f"/aap/sessions/{made['sessionId']}/turns"
        for _ in range(TURNS_PER_SESSION):
            await self._aap_turn(turns, self.random.choice(MESSAGES))
        answer = await self.call("POST", turns, {"messages": [{"role": "user", "content": "/permit"}]})
        call = answer["messages"][-1]["content"][-1]["toolCallId"]
        granted = {"role": "tool_permission", "toolCallId": call, "granted": self.random.random() < 0.5}
        await self.call("POST", turns, {"messages": [granted]})
        self.tally.asks += 1
        await self.call("GET", f"/aap/sessions/{made['sessionId']}/history?type=full")

    async def _aap_turn(self, turns: str, words: str) -> None:
        body = {"stream": "delta", "messages": [{"role": "user", "content": words}]}
        leaves = self.random.random() < 0.2
        async with self.http.post(f"{self.address}{turns}", json=body) as stream:
            if leaves:
                await stream.content.readany()
            else:
                await stream.read()
        if leaves:
            async with self.http.get(f"{self.address}{turns}/current", params={"after": "1"}) as rest:
                await rest.read()
            self.tally.returns += 1
        self.tally.turn("aap")

    async def cas(self) -> None:
        """One long stream over several turns, left and resumed; turns that are interrupted."""
        made = (await self.call("POST", CAS, NEW_CAS))["id"]
        last = ""
        for number in range(TURNS_PER_SESSION):
            stops = number % 4 == 3
            words = "/slow 1000" if stops else self.random.choice(MESSAGES)
            await self.call("POST", f"{CAS}/{made}/events", {"events": [{"type": "user.message", "content": words}]})
            if stops:
                await self.call("POST", f"{CAS}/{made}/events", {"events": [{"type": "user.interrupt"}]})
                self.tally.interrupts += 1
            last = await self._cas_stream(made, last)
            self.tally.turn("cas")

    async def _cas_stream(self, session: str, last: str) -> str:
        """Read until the session is idle; returns the id of the last event."""
        headers = {"Last-Event-ID": last} if last else {}
        async with self.http.get(f"{self.address}{CAS}/{session}/events/stream", headers=headers) as stream:
            async for line in stream.content:
                last = line[4:].decode().strip() if line.startswith(b"id: ") else last
                if line.startswith(b"data: ") and b'"session.status_idle"' in line:
                    break
        self.tally.returns += bool(headers)
        return last

    async def zenflux(self) -> None:
        """Runs on a socket: read to the end, aborted, or left and resumed on another socket."""
        async with self.http.ws_connect(f"{self.address}/api/v1/ws/chat") as ws:
            for number in range(TURNS_PER_SESSION):
                aborts = number == 2
                words = "/slow 1000" if aborts else self.random.choice(MESSAGES)
                run = await self._ask(ws, "chat.send", message=words, user_id="local")
                if aborts:
                    await self._ask(ws, "chat.abort", session_id=run)
                    self.tally.interrupts += 1
                await self._told(ws)
                self.tally.turn("zenflux")
            run = await self._ask(ws, "chat.send", message="/slow 5", user_id="local")
        async with self.http.ws_connect(f"{self.address}/api/v1/ws/chat") as ws:
            await self._ask(ws, "session.resume", session_id=run)
            await self._told(ws)
        self.tally.returns += 1
        self.tally.turn("zenflux")

    async def _ask(self, ws: aiohttp.ClientWebSocketResponse, method: str, **params: Any) -> str:
        await ws.send_json({"type": "req", "id": method, "method": method, "params": params})
        while (said := await ws.receive_json(timeout=TURN_SECONDS)).get("id") != method:
            pass
        if not said["ok"]:
            raise BenchFailure(f"{method} was refused: {said['error']}")
        return str(said["payload"]["session_id"])

    async def _told(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        while (await ws.receive_json(timeout=TURN_SECONDS)).get("event") != "session_end":
            pass

    async def blade(self) -> None:
        """A page that chats, loses its connection and subscribes again."""
        made = (await self.call("POST", "/api/sessions", {"intent": "soak"}))["session_id"]
        last = 0
        for _ in range(2):
            sio, over = socketio.AsyncClient(reconnection=False), asyncio.Event()
            numbers = [last]

            def hear(event: str, payload: Any, numbers: list[int] = numbers, over: asyncio.Event = over) -> None:
                numbers.append(payload.get("stream_sequence") or 0)
                if event == "chat:end":
                    over.set()

            sio.on("*", hear)
            await sio.connect(self.address, wait_timeout=TURN_SECONDS, transports=["websocket"])
            wanted = {"session_id": made, "after_sequence": last, "resume": True}
            await sio.call("session:subscribe", wanted, timeout=TURN_SECONDS)
            for _ in range(2):
                over.clear()
                await sio.call(
                    "chat:send", {"session_id": made, "message": self.random.choice(MESSAGES)}, timeout=TURN_SECONDS
                )
                await asyncio.wait_for(over.wait(), TURN_SECONDS)
                self.tally.turn("blade")
            last = max(numbers)
            await sio.disconnect()
            await sio.shutdown()
            self.tally.returns += 1

    async def hung(self) -> None:
        """A client that requests everything and reads nothing; the server has to disconnect it."""
        made = (await self.call("POST", CAS, NEW_CAS))["id"]
        with socket.socket() as wire:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, _, port = self.address.rpartition("/")[2].partition(":")
            wire.connect((host, int(port)))
            path = f"{CAS}/{made}/events/stream?event_deltas[]=agent.message"
            wire.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            events = {"events": [{"type": "user.message", "content": "/burst 3000"}]}
            await self.call("POST", f"{CAS}/{made}/events", events)
            await asyncio.sleep(5)
        self.tally.turn("cas")
        self.tally.hangs += 1


async def repeat_visits(crowd: SoakClients, visit: Callable[[], Awaitable[None]], until: asyncio.Event) -> None:
    """One visit after the other, at least one; a visit that takes too long is a fault."""
    is_first = True
    while is_first or not until.is_set():
        is_first = False
        try:
            await asyncio.wait_for(visit(), 4 * TURN_SECONDS)
        except (aiohttp.ClientError, socketio.exceptions.SocketIOError, TimeoutError) as error:
            raise BenchFailure(f"{visit.__name__}: {type(error).__name__}: {error}") from error


async def idle_sessions(crowd: SoakClients, count: int) -> None:
    """Sessions in which nothing happens."""
    for _ in range(count):
        await crowd.call("POST", "/aap/sessions", {"agent": {"name": "demo"}})


__all__ = [
    "SoakClients",
    "SoakCounts",
    "idle_sessions",
    "repeat_visits",
]
