"""A small correct ZenFlux client, which can be wrong in one way: `python -m conformance.clients.zenflux.client`."""

import asyncio
from typing import Any
from uuid import uuid4

import aiohttp
import orjson

from conformance.clients.client_base import STORM, ClientBase, Gone, run_client
from conformance.clients.situation import ECHO, Cue

Frame = dict[str, Any]
TICK_LIMIT = 60.0
BACKOFF, LONGEST_BACKOFF, TRIES = 0.8, 15.0, 4
KNOWN = (
    "session_start", "session_stopped", "session_end", "ping", "conversation_start", "conversation_delta",
    "conversation_stop", "message_start", "message_delta", "message_stop", "content_start", "content_delta",
    "content_stop", "error", "done", "rollback_options", "rollback_completed", "long_running_confirm", "tick",
)  # fmt: skip
ENDS = ("session_end", "session_stopped", "error")


class ZenfluxClient:
    """One conversation over one socket."""

    def __init__(self, cue: Cue, wrong: str | None, http: aiohttp.ClientSession) -> None:
        self._actor, self._http = ClientBase(cue, wrong), http
        self._wrong, self._told = self._actor.is_wrong, cue.instruction
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._conversation: str | None = None
        self._run, self._kinds, self._count = "", dict[int, str](), 0

    async def run(self) -> None:
        await self._connect()
        try:
            await self._actor.send_all(self._send)
        finally:
            if self._socket is not None:
                await self._socket.close()

    async def _connect(self) -> None:
        """Connect, at growing intervals while it fails."""
        for number in range(STORM if self._wrong("storms") else TRIES):
            try:
                url = self._actor.cue.url + "/ws/chat"
                self._socket = await self._http.ws_connect(url, timeout=aiohttp.ClientWSTimeout(ws_close=0.1))
                return
            except aiohttp.ClientError:
                await asyncio.sleep(0.05 if self._wrong("storms") else min(BACKOFF * 2**number, LONGEST_BACKOFF))
        raise Gone("there is no connection")

    # -- runs ----------------------------------------------------------------------------------------------------------

    async def _send(self, text: str) -> None:
        if self._wrong("new_sockets"):
            await self._connect()
        params: Frame = {"message": text, "user_id": "local", "stream": True}
        if self._conversation is not None and not self._wrong("forgets_conversation"):
            params["conversation_id"] = self._conversation
        if self._wrong("no_user"):
            del params["user_id"]
        if self._wrong("invents_methods"):
            await self._request("chat.greet", {})
        others = self._told.messages[1:]
        for number in range(STORM if self._wrong("storms", "repeats_refused") else 1):
            try:
                await self._request("chat.send", params)
                if self._wrong("does_not_wait") and others and ECHO not in others:
                    return
                await self._read()
            except Refused:
                if number == STORM - 1 or (self._wrong("repeats_refused") and number):
                    raise
            else:
                return
        raise Gone("refused")

    async def _read(self) -> None:
        """Read to the end of the run; a socket that broke is replaced, and its run is lost."""
        self._kinds.clear()
        while True:
            try:
                frame = await self._receive()
            except (ConnectionError, TimeoutError):
                await self._broken()
                raise Gone("the connection broke") from None
            if frame.get("type") == "res" and frame.get("ok") is False:
                if frame["error"]["code"] == "METHOD_NOT_FOUND":
                    continue
                raise Refused(frame["error"]["code"])
            if frame.get("type") == "event" and await self._take(frame["event"], frame):
                return

    async def _broken(self) -> None:
        if self._wrong("never_reconnects"):
            raise Gone("the connection broke")
        if self._socket is not None:
            await self._socket.close()
        await self._connect()
        if self._wrong("repeats_after_cuts"):
            await self._request("chat.send", {"message": self._told.messages[0], "user_id": "local"})
        if self._wrong("leaves_after_cuts"):
            self._conversation = None

    async def _receive(self) -> Frame:
        assert self._socket is not None, "the client is connected"
        limit = 1.0 if self._wrong("impatient") else None if self._wrong("waits_forever") else TICK_LIMIT
        message = await self._socket.receive(limit)
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise ConnectionError("the socket is closed")
        frame: Frame = orjson.loads(message.data)
        return frame

    async def _take(self, name: str, frame: Frame) -> bool:
        """One event; whether the run is over."""
        if self._wrong("strict_events") and name not in KNOWN:
            raise RuntimeError(f"what is {name}?")
        if self._wrong("strict_members") and "x_examiners" in frame:
            raise RuntimeError("what is x_examiners?")
        if self._wrong("no_ticks") and name == "tick":
            raise RuntimeError("what is a tick?")
        if self._wrong("dies_of_errors") and name == "error":
            raise RuntimeError("the run failed")
        data = frame["payload"].get("data") or {}
        match name:
            case "session_start":
                self._run, self._conversation = data["session_id"], data["conversation_id"]
            case "content_start":
                self._kinds[data["index"]] = data["content_block"]["type"]
                if self._wrong("no_thinking") and data["content_block"]["type"] == "thinking":
                    raise RuntimeError("it thinks")
            case "content_delta" if self._kinds.get(data["index"]) == "text":
                self._actor.answer = ("" if self._wrong("last_delta") else self._actor.answer) + data["delta"]
                await self._maybe_stop()
            case "message_delta" if data["type"] == "confirmation_request":
                await self._confirm(orjson.loads(data["content"]))
            case "long_running_confirm" if not self._wrong("never_continues"):
                await self._post(f"/session/{self._run}/confirm_continue", {})
            case "rollback_options" if not self._wrong("never_rolls_back"):
                await self._post(f"/session/{self._run}/rollback", {"option": data["options"][1]["id"]})
        return name in ENDS

    async def _confirm(self, asked: Frame) -> None:
        options = asked["options"]
        if self._told.option is not None:
            response = options[0 if self._wrong("first_option") else self._told.option]
        else:
            is_approved = (self._told.decision == "allow") is not self._wrong("misdecides")
            response = "approve" if is_approved else "reject"
        for _ in range(2 if self._wrong("answers_twice") else 1):
            await self._post(f"/human-confirmation/{self._run}", {"response": response, "metadata": {}})

    async def _maybe_stop(self) -> None:
        if self._told.stop and not self._wrong("never_stops"):
            await self._request("chat.abort", {"session_id": self._run})

    # -- the wire ------------------------------------------------------------------------------------------------------

    async def _request(self, method: str, params: Frame) -> None:
        assert self._socket is not None, "the client is connected"
        self._count += 1
        name = str(self._count) if self._wrong("counts_ids") else str(uuid4())
        kind = "request" if self._wrong("odd_frames") else "req"
        frame = {"type": kind, "id": name, "method": method, "params": params}
        try:
            await self._socket.send_str(orjson.dumps(frame).decode())
        except ConnectionError:
            raise Gone("the connection broke") from None

    async def _post(self, path: str, body: Frame) -> None:
        async with self._http.post(self._actor.cue.url + path, json=body) as response:
            await response.read()


class Refused(Gone):
    """A response says that it is not ok."""


async def drive(cue: Cue, wrong: str | None = None) -> None:
    """Do what the cue says."""
    async with aiohttp.ClientSession() as http:
        await ZenfluxClient(cue, wrong, http).run()


if __name__ == "__main__":
    run_client(drive)
