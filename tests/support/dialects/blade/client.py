"""A Blade client of these tests: python-socketio, REST, and a page that follows strictly."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import socketio

from tests.support.dialects.blade.reader import Page
from tests.support.gateway_server import Served, serving

SERVED = {"dialects": {"aap": {}, "blade": {}}}


@asynccontextmanager
async def blade(folder: Path, **settings: Any) -> AsyncIterator[Served]:
    async with serving(folder, **{**SERVED, "log": "memory", **settings}) as served:
        yield served


class SocketClient:
    """One connection and the page it feeds."""

    def __init__(self, served: Served, key: str | None = None) -> None:
        self.served = served
        self.key = key
        self.page = Page()
        self.raw: list[Any] = []
        self.wrong: Exception | None = None
        self.sio = socketio.AsyncClient(reconnection=False)
        self.sio.on("*", self._hear)
        self._news = asyncio.Event()

    async def _hear(self, event: str, payload: Any) -> None:
        self.raw.append((event, payload))
        try:
            if event != "turn:events":
                self.page.hear(event, payload)
        except (AssertionError, KeyError, ValueError) as wrong:
            self.wrong = self.wrong or wrong
        self._news.set()

    async def connect(self, **options: Any) -> "SocketClient":
        auth = {"token": self.key} if self.key else None
        await self.sio.connect(self.served.address, auth=auth, wait_timeout=60, **options)
        return self

    async def close(self) -> None:
        await self.sio.disconnect()
        await self.sio.shutdown()
        if self.wrong is not None:
            raise self.wrong

    async def until(self, true: Any) -> None:
        async with asyncio.timeout(40):
            while not true():
                if self.wrong is not None:
                    raise self.wrong
                self._news.clear()
                await self._news.wait()

    # -- socket ---------------------------------------------------------------------------------------------------

    async def subscribe(self, session_id: str, **more: Any) -> Any:
        return await self.sio.call("session:subscribe", {"session_id": session_id, **more}, timeout=60)

    async def send(self, session_id: str, message: Any = "", **more: Any) -> Any:
        return await self.sio.call("chat:send", {"session_id": session_id, "message": message, **more}, timeout=60)

    async def chat(self, session_id: str, message: Any = "", **more: Any) -> dict[str, Any]:
        """Say something and wait for the end of the chat."""
        before = len(self.page.chats)
        ack = await self.send(session_id, message, **more)
        assert ack["status"] == "ok", ack
        await self.until(lambda: len(self.page.chats) > before)
        end = self.page.chats[before]
        assert end["chat_run_id"] == ack["chat_run_id"]
        return end

    async def answer(self, session_id: str, call_id: str, **picks: Any) -> dict[str, Any]:
        given = {"tool_call_id": call_id, "selections": {}, "custom": {}, **picks}
        return await self.chat(session_id, askuser_answer=given)

    # -- REST -----------------------------------------------------------------------------------------------------

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        content = orjson.dumps(body) if body is not None else None
        async with self.served.http.request(
            method, self.served.url(f"/api{path}"), data=content, headers=headers,
        ) as response:
            text = await response.read()
            return response.status, orjson.loads(text) if text else None

    async def session(self, **body: Any) -> str:
        status, made = await self.call("POST", "/sessions", {"intent": "test", **body})
        assert status == 200, made
        return str(made["session_id"])

    async def status(self, session_id: str) -> str:
        return str((await self.call("GET", f"/sessions/{session_id}"))[1]["status"])

    async def messages(self, session_id: str) -> list[dict[str, Any]]:
        status, listed = await self.call("GET", f"/sessions/{session_id}/messages")
        assert status == 200
        return list(listed)


@asynccontextmanager
async def connect(served: Served, key: str | None = None, **options: Any) -> AsyncIterator[SocketClient]:
    talker = await SocketClient(served, key).connect(**options)
    try:
        yield talker
    finally:
        await talker.close()
