"""A small correct Blade client, which can be wrong in one way: `python -m conformance.clients.blade.client`."""

import asyncio
from typing import Any

import aiohttp
import orjson
import socketio  # type: ignore[import-untyped]
from engineio.packet import PONG  # type: ignore[import-untyped]
from socketio.exceptions import SocketIOError  # type: ignore[import-untyped]

from conformance.clients.client_base import STORM, ClientBase, Gone, run_client
from conformance.clients.situation import ECHO, Cue

Body = dict[str, Any]
EVENTS = ("chat:start", "turn:start", "turn:patch", "turn:end", "chat:end", "system:error")
PATCHES = ("add_content", "add_tool_call", "tool_result", "set_status", "set_tool_status")
BACKOFF, TRIES = 1.0, 4
LOST = "lost"


class BladeClient:
    """One conversation over one socket."""

    def __init__(self, cue: Cue, wrong: str | None, http: aiohttp.ClientSession) -> None:
        self._actor, self._http = ClientBase(cue, wrong), http
        self._wrong, self._told = self._actor.is_wrong, cue.instruction
        self._session, self._last, self._inbox = "", 0, asyncio.Queue[tuple[str, Body]]()
        self._children: set[str] = set()
        self._asked: Body | None = None
        self._io: Any = None

    async def run(self) -> None:
        await self._open()
        await self._connect()
        try:
            await self._actor.send_all(self._send)
        finally:
            await self._io.disconnect()

    async def _open(self) -> None:
        headers = {"Authorization": f"Bearer {self._actor.cue.key}"}
        body: Body = {"intent": 7 if self._wrong("no_intent") else "examined"}
        async with self._http.post(f"{self._actor.cue.url}/api/sessions", json=body, headers=headers) as response:
            self._session = (await response.json())["session_id"]

    async def _connect(self) -> None:
        """Connect, at growing intervals while it fails, and subscribe to what follows the last event."""
        tries = STORM if self._wrong("storms") else TRIES
        for number in range(tries):
            self._io = socketio.AsyncClient(reconnection=False, http_session=self._http)
            self._io.on("*", self._hear)
            self._io.on("disconnect", self._lose)
            if self._wrong("no_pongs"):
                self._io.eio._send_packet = _without_pongs(self._io.eio._send_packet)
            auth = {} if self._wrong("no_key") else {"token": self._actor.cue.key}
            try:
                await self._io.connect(self._actor.cue.url, auth=auth, transports=["websocket"])
            except (SocketIOError, aiohttp.ClientError):
                if number + 1 == tries:
                    raise Gone("there is no connection") from None
                await asyncio.sleep(0.05 if self._wrong("storms") else BACKOFF * 2**number)
            else:
                break
        if self._last and self._wrong("never_resumes"):
            return
        cursor = 0 if self._wrong("from_the_start") else self._last
        body = {"session_id": self._session, "after_sequence": cursor} | ({"resume": True} if self._last else {})
        await self._io.call("session:subscribe", body)

    async def _hear(self, name: str, body: Any = None) -> None:
        """Keep an event for whoever reads."""
        if self._wrong("strict_events") and name not in EVENTS and name.startswith("x:"):
            await self._io.disconnect()
        if isinstance(body, dict):
            self._last = max(self._last, body.get("stream_sequence") or 0)
            self._inbox.put_nowait((name, body))

    async def _lose(self, *why: Any) -> None:
        self._inbox.put_nowait((LOST, {}))

    # -- chats ---------------------------------------------------------------------------------------------------------

    async def _send(self, text: str) -> None:
        if self._wrong("new_sessions"):
            await self._open()
        body: Body = {"session_id": self._session, "message": text, "mode": "executing"}
        if self._wrong("no_message_text"):
            body["message"] = {"text": text}
        others = self._told.messages[1:]
        for number in range(STORM if self._wrong("storms", "repeats_refused") else 1):
            await self._emit("chat:send", body)
            if self._wrong("does_not_wait") and others and ECHO not in others:
                await asyncio.sleep(0.05)  # until it is sent
                return
            try:
                await self._read()
            except Refused:
                if self._wrong("repeats_refused") and number:
                    raise
            else:
                return
        raise Gone("refused")

    async def _read(self) -> None:
        """Read to the end of the chat; a socket that broke is replaced, and the chat is resumed."""
        while True:
            limit = 2.0 if self._wrong("impatient") else 60.0
            try:
                async with asyncio.timeout(limit):
                    name, body = await self._inbox.get()
            except TimeoutError:
                raise Gone("no event came") from None
            if name == LOST:
                await self._broken()
            elif name == "system:error" and body.get("code") in (400, 500):
                raise Refused(str(body["code"]))
            elif await self._take(name, body):
                return

    async def _broken(self) -> None:
        if self._wrong("strict_events", "no_pongs"):
            raise RuntimeError("what was that?")
        await self._connect()
        if self._wrong("repeats_after_cuts"):
            await self._emit("chat:send", {"session_id": self._session, "message": self._told.messages[0]})
        if self._wrong("leaves_after_cuts"):
            await self._open()
            raise Gone("the connection broke")
        if self._wrong("never_resumes"):
            raise Gone("the connection broke")

    async def _take(self, name: str, body: Body) -> bool:
        """One event; whether the chat is over."""
        if self._wrong("strict_members") and "x_examiners" in body:
            raise RuntimeError("what is x_examiners?")
        match name:
            case "turn:start" if body.get("parent_fork_tool_call_id"):
                self._children.add(body["turn_id"])
            case "turn:patch":
                await self._patch(body)
            case "chat:end":
                return await self._end(body)
        return False

    async def _patch(self, body: Body) -> None:
        data, is_child = body["data"], body["turn_id"] in self._children
        match body["patch_type"]:
            case "add_content" if data["type"] == "text" and (not is_child or self._wrong("mixes_children")):
                delta = data["text_delta"]
                self._actor.answer = delta if self._wrong("last_delta") else self._actor.answer + delta
                if self._told.stop and not self._wrong("never_stops"):
                    await self._emit("chat:stop", {"session_id": self._session})
            case "add_content" if data["type"] == "thinking" and self._wrong("no_thinking"):
                raise RuntimeError("it thinks")
            case "add_tool_call" if data["status"] == "awaiting_answer":
                self._asked = data

    async def _end(self, body: Body) -> bool:
        """Whether nothing is asked any more; a question is answered with a message that has none."""
        if self._wrong("dies_of_failures") and body["status"] == "failed":
            raise RuntimeError("the chat failed")
        asked, self._asked = self._asked, None
        if asked is None:
            return True
        questions = orjson.loads(asked["arguments"])["questions"]
        option = 0 if self._wrong("first_option") else self._told.option
        picks = {str(number): [option] for number in range(1 if self._wrong("first_question") else len(questions))}
        ref = "tc_0" if self._wrong("answers_nobody") else asked["id"]
        answer = {"tool_call_id": ref, "selections": picks, "custom": {}}
        await self._emit("chat:send", {"session_id": self._session, "message": "", "askuser_answer": answer})
        return False

    async def _emit(self, name: str, body: Body) -> None:
        try:
            await self._io.emit(name, body)
        except SocketIOError:
            raise Gone("the connection broke") from None


def _without_pongs(send: Any) -> Any:
    async def send_others(packet: Any) -> None:
        if packet.packet_type != PONG:
            await send(packet)

    return send_others


class Refused(Gone):
    """The server said that it does not want the message."""


async def drive(cue: Cue, wrong: str | None = None) -> None:
    """Do what the cue says."""
    async with aiohttp.ClientSession() as http:
        await BladeClient(cue, wrong, http).run()


if __name__ == "__main__":
    run_client(drive)
