"""Talks to the API of the console as its page does: JSON, and server-sent events over plain requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import orjson

from tests.support.gateway_server import Served

API = "/console/api"


class Event(NamedTuple):
    """One server-sent event."""

    name: str
    id: str
    data: Any


class ConsoleClient:
    """Somebody with a key, or without one."""

    def __init__(self, served: Served, key: str = "") -> None:
        self.served = served
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    @asynccontextmanager
    async def asks(self, method: str, path: str, **more: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {**self.headers, **more.pop("headers", {})}
        async with self.served.http.request(method, self.served.url(API + path), headers=headers, **more) as answer:
            yield answer

    async def call(
        self, method: str, path: str, body: Any = None, status: int = 200, *, raw: bool = False, **more: Any,
    ) -> Any:
        """The JSON of the answer, which must have this status; or its bytes."""
        async with self.asks(method, path, **({"json": body} if body is not None else {}), **more) as answer:
            text = await answer.read()
            assert answer.status == status, (answer.status, text[:500])
            return orjson.loads(text) if not raw and answer.content_type == "application/json" and text else text

    async def get(self, path: str, status: int = 200, **more: Any) -> Any:
        return await self.call("GET", path, status=status, **more)

    async def error(self, method: str, path: str, status: int, body: Any = None, **more: Any) -> dict[str, Any]:
        """The error of the answer, which must have this status."""
        error: dict[str, Any] = (await self.call(method, path, body, status, **more))["error"]
        assert error["message"]
        return error

    async def create(self, **body: Any) -> str:
        return str((await self.call("POST", "/sessions", body, 201))["session_id"])

    async def say(self, session: str, text: str) -> dict[str, Any]:
        return await self.command(session, {"kind": "send_message", "content": text})

    async def command(self, session: str, *commands: dict[str, Any]) -> dict[str, Any]:
        done: dict[str, Any] = await self.call("POST", f"/sessions/{session}/commands", {"commands": commands}, 202)
        return done

    @asynccontextmanager
    async def events(self, path: str, last: str = "") -> AsyncIterator[AsyncIterator[Event]]:
        headers = {"Last-Event-ID": last} if last else {}
        async with self.asks("GET", path, headers=headers) as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream"), await answer.text()
            yield read_events(answer)

    async def talk(self, session: str, text: str) -> list[dict[str, Any]]:
        """Say something, and return the records when the turn has ended or waits."""
        after = (await self.get(f"/sessions/{session}"))["head"]
        await self.say(session, text)
        async with asyncio.timeout(60), self.events(f"/sessions/{session}/stream?after={after}") as events:
            async for event in events:
                if event.data["name"] in ("turn.ended", "turn.suspended"):
                    break
        records: list[dict[str, Any]] = (await self.get(f"/sessions/{session}/records?limit=2000"))["records"]
        return records


async def read_events(answer: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in answer.content:
        text = line.decode().rstrip("\n")
        if text.startswith(":"):
            continue
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(fields.get("event", ""), fields.get("id", ""), orjson.loads(fields["data"]))
            fields = {}
