"""ZenFlux, spoken while servers die: a chat socket, and runs that are taken up after the last number."""

from collections.abc import Sequence
from typing import Any

import aiohttp
import orjson

import gateway.model as m
from adapters.zenflux.server.stream_options import socket_options
from tests.prove.crash.client_base import PATIENCE, CrashRun, DialectClient
from tests.prove.crash.expected_streams import projected_frames, start_of
from tests.prove.crash.history import Kind
from tests.support.dialect_tables import dialect


class CrashClient(DialectClient):
    """A chat socket; a run that was cut off is taken up with `session.resume`."""

    dialect = "zenflux"
    asking = ("/permit", "/ask")

    def __init__(self, world: CrashRun, number: int) -> None:
        super().__init__(world, number)
        self.run: str | None = None
        self.had: list[str] = []

    async def create(self) -> str:
        params = {"user_id": "local"}
        async with self.world.http.post(self.world.url("/api/v1/conversations"), params=params) as answer:
            await self.world.check(Kind.STUCK, self.name, "a new one", answer)
            return str((await answer.json())["data"]["id"])

    async def resume(self) -> None:
        if self.run is not None and not (await self.rested()).asks:  # else when they are answered
            await self._follow("session.resume", {"session_id": self.run, "after_seq": len(self.had)})

    async def say(self, words: str) -> None:
        self.said(words, False)
        self.run, self.had = None, []
        await self._follow("chat.send", {"message": words, "user_id": "local", "conversation_id": self.session}, words)

    async def _follow(self, method: str, params: dict[str, Any], words: str = "") -> None:
        """The run up to its end, or to where it asks."""
        after, heard, ended = (self.had[-1] if self.had else None), list[str](), False
        try:
            async with self.world.http.ws_connect(self.world.url("/api/v1/ws/chat"), max_msg_size=0) as ws:
                await ws.send_json({"type": "req", "id": "1", "method": method, "params": params})
                while not ended:
                    message = await ws.receive(timeout=PATIENCE)
                    if message.type is not aiohttp.WSMsgType.TEXT:
                        raise EOFError("the socket was closed")
                    frame = orjson.loads(message.data)
                    if frame["type"] == "res":
                        if not frame["ok"]:
                            self.refused(frame, frame["error"]["code"])
                        self.run = frame["payload"]["session_id"]
                        if words:
                            self.said(words, True)
                    elif frame["type"] == "event" and frame["seq"]:
                        heard.append(message.data)
                        self.had.append(message.data)
                        self.world.hear()
                        ended = frame["event"] == "session_end"
                        if not ended and _asks(frame) and (await self.rested()).asks:
                            return
        finally:
            if self.run is not None:
                self.hears(f"zenflux {self.run}", heard, after, ended)
                if ended:
                    self.run, self.had = None, []

    async def answer(self, view: m.SessionView) -> None:
        for ask in view.asks.values():
            self.answered(ask, False)
            response = "approve" if isinstance(ask.ask, m.PermissionAsk) else "whatever"
            await self.post(f"/api/v1/human-confirmation/{ask.request_id}", {"response": response})
            self.answered(ask, True)
        await self.resume()


def _asks(frame: dict[str, Any]) -> bool:
    data = frame["payload"]["data"]
    return frame["event"] == "message_delta" and data.get("type") == "confirmation_request"


def expected_lines(records: Sequence[m.Record], view: m.SessionView, turn_id: str) -> list[str]:
    """What the stream of a run tells."""
    begins = start_of(records, turn_id)
    if begins is None:
        return []
    options = socket_options(dialect("zenflux").settings(), view)  # type: ignore[misc, arg-type]
    told: list[str] = []
    for record, frames in projected_frames("zenflux", options, records, begins):
        told += [frame.body.decode() for frame in frames]
        if isinstance(record.event, m.TurnEnded):
            return told
    return told
