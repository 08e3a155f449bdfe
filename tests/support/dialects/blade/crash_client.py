"""Blade, spoken while servers die: one Socket.IO connection, subscribed after the last number."""

import asyncio
import json
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import orjson
import socketio

import gateway.model as m
from adapters.blade.server.turn_state import wire_call_id
from tests.prove.crash.client_base import BROKEN, PATIENCE, CrashRun, DialectClient
from tests.prove.crash.expected_streams import projected_frames
from tests.prove.crash.history import ConnectionHistory
from tests.support.dialect_tables import dialect


async def result_unless(gone: asyncio.Event, call: Coroutine[object, None, Any]) -> Any:
    """The answer to a call; `EOFError` if the connection is gone first, which the library does not tell who waits."""
    calling, leaving = asyncio.ensure_future(call), asyncio.ensure_future(gone.wait())
    try:
        await asyncio.wait([calling, leaving], return_when=asyncio.FIRST_COMPLETED)
        if gone.is_set():
            raise EOFError("the server has gone")
        return calling.result()
    finally:
        calling.cancel()
        leaving.cancel()


class CrashListener:
    """A Socket.IO connection that subscribes after the last number that was heard."""

    hears_many = True

    def __init__(self, world: CrashRun, name: str) -> None:
        self.world = world
        self.name = name
        self.last: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.sio: socketio.AsyncClient | None = None
        self.there, self.gone = asyncio.Event(), asyncio.Event()

    async def listen(self, *sessions: str) -> None:
        sio = socketio.AsyncClient(reconnection=False, handle_sigint=False)
        heard: dict[str, list[str]] = {session: [] for session in sessions}
        after = {session: self.last.get(session) for session in sessions}
        gone = asyncio.Event()

        async def hear(event: str, payload: Any) -> None:
            if isinstance(payload, dict) and payload.get("session_id") in heard and payload.get("stream_sequence"):
                thing = _line(event, payload)
                heard[payload["session_id"]].append(thing)
                self.last[payload["session_id"]] = thing
                self.numbers[payload["session_id"]] = payload["stream_sequence"]
                self.world.hear()

        sio.on("*", hear)
        sio.on("disconnect", lambda *_: gone.set())
        try:
            await sio.connect(self.world.address, transports=["websocket"], wait_timeout=PATIENCE)
            for session in sessions:
                wanted = {"session_id": session, "after_sequence": self.numbers.get(session, 0), "resume": True}
                ack = await result_unless(gone, sio.call("session:subscribe", wanted, timeout=PATIENCE))
                if isinstance(ack, dict) and ack.get("status") == "error":
                    raise ConnectionError(f"refused: {ack}")
            self.sio = sio
            self.gone.clear()
            self.there.set()
            await gone.wait()
        finally:
            is_subscribed, self.sio = self.sio is sio, None
            self.there.clear()
            self.gone.set()
            for session, things in heard.items():
                if things or is_subscribed:  # a connection that was lost while it was made has listened to nothing
                    self.world.history.hearings.append(
                        ConnectionHistory(self.name, session, "blade", tuple(things), after[session]))
            with suppress(*BROKEN):
                await sio.disconnect()
            await sio.shutdown()
        raise EOFError("the server has gone")


class CrashClient(DialectClient):
    """One socket for everything."""

    dialect = "blade"
    asking = ("/ask", "/fork-ask", "/permit")

    def __init__(self, world: CrashRun, number: int) -> None:
        super().__init__(world, number)
        self.ear = CrashListener(world, self.name)

    async def create(self) -> str:
        return str((await self.post("/api/sessions", {"intent": "crash"}))["session_id"])

    async def listen(self) -> None:
        await self.ear.listen(self.session)

    async def say(self, words: str) -> None:
        self.said(words, False)
        if await self._call(message=words):
            self.said(words, True)

    async def answer(self, view: m.SessionView) -> None:
        ask = next(iter(view.asks.values()))
        self.answered(ask, False)
        questions = getattr(ask.ask, "questions", ())
        given = {"tool_call_id": wire_call_id(ask.request_id), "selections": {} if questions else {"0": [0]},
                 "custom": {str(number): "both" for number in range(len(questions))}}
        if await self._call(askuser_answer=given):
            self.answered(ask, True)

    async def _call(self, **said: Any) -> bool:
        """Whether it was taken."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self.ear.there.wait()
        except TimeoutError:
            self.stuck("it cannot subscribe")
        sio = self.ear.sio
        if sio is None:
            raise EOFError("the server has gone")
        request = {"session_id": self.session, "message": "", **said}
        ack = await result_unless(self.ear.gone, sio.call("chat:send", request, timeout=PATIENCE))
        if "does not wait for an answer" in str(ack) and "askuser_answer" in said:
            await asyncio.sleep(0.2)  # an answer that was in doubt has been taken, and is not in the log yet
            return False
        return bool(ack["status"] == "ok") or self.refused(ack, str(ack.get("code")))


def expected_lines(records: Sequence[m.Record], view: m.SessionView) -> list[str]:
    """What the room of a session is told."""
    projected = projected_frames("blade", dialect("blade").default_options, records)
    return [_line(frame.name, orjson.loads(frame.body)) for _, frames in projected for frame in frames]


def _line(name: str, payload: Any) -> str:
    return f"{name} {json.dumps(payload, sort_keys=True)}"
