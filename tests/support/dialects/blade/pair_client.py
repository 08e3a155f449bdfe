"""A Blade page: it says one thing over Socket.IO, and answers every question it is asked."""

import asyncio
from typing import Any

import socketio

from tests.support.dialects.blade.pair_reader import PairReader
from tests.support.dialects.blade.reader import Page
from tests.support.gateway_server import Served
from tests.support.pairs.answer_texts import PAINTED, PICTURE, SCHEMA


class PairClient:
    """Sessions at one server, each on a connection of its own. Files of Blade's have no address."""

    can_bring = ("images_in", "structured_output")

    def __init__(self, served: Served) -> None:
        self.served = served

    async def converse(
        self, text: str, *, stop_at: int = 0, kindly: bool = True, brings: str = "",
    ) -> PairReader:
        page = _Page(self.served, await self._session())
        await page.sio.connect(self.served.address, transports=["websocket"])
        try:
            await page.converse(_said(text, brings), stop_at, kindly)
        finally:
            await page.sio.shutdown()
        return page.reading

    async def _session(self) -> str:
        async with self.served.http.post(self.served.url("/api/sessions"), json={"intent": "a talk"}) as response:
            assert response.status == 200, await response.text()
            return str((await response.json())["session_id"])


class _Page:
    """One connection, subscribed to one session."""

    def __init__(self, served: Served, session_id: str) -> None:
        self.session = {"session_id": session_id}
        self.reading, self.shown = PairReader(), Page()
        self.sio = socketio.AsyncClient(reconnection=False)
        self.sio.on("*", self._hear)
        self.heard: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def _hear(self, event: str, payload: Any) -> None:
        self.heard.put_nowait((event, payload))

    async def converse(self, said: dict[str, Any] | None, stop_at: int, kindly: bool) -> None:
        await self.sio.call("session:subscribe", self.session)
        while said is not None:
            before = self.reading.chats
            ack = await self.sio.call("chat:send", {**self.session, **said})
            assert ack["status"] == "ok", ack
            while self.reading.chats == before:
                event, payload = await self.heard.get()
                self.shown.hear(event, payload)
                self.reading.hear(event, payload)
                if 0 < stop_at <= self.reading.deltas:
                    stop_at = 0
                    await self.sio.call("chat:stop", self.session)
            said = next((_answer(*one, kindly) for one in self.reading.waiting.items()), None)


def _said(text: str, brings: str) -> dict[str, Any]:
    if brings == "images_in":
        return {"message": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": PICTURE}}]}
    asked_for = {"output_schema": SCHEMA, "headless": True} if brings == "structured_output" else {}
    return {"message": text, "mode": "executing", **asked_for}


def _answer(call_id: str, asked: dict[str, Any], kindly: bool) -> dict[str, Any]:
    """The first choice of each question; the last to whatever one does not like; words where there is no choice."""
    pick = 0 if kindly else -1
    choices = {str(number): one["options"] for number, one in enumerate(asked["questions"])}
    return {"message": "", "askuser_answer": {
        "tool_call_id": call_id,
        "selections": {number: [range(len(labels))[pick]] for number, labels in choices.items() if labels},
        "custom": {number: PAINTED for number, labels in choices.items() if not labels},
    }}
