"""Blade's REST on a real port, for tests that talk HTTP to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

import gateway.model as m
from gateway.app import Gateway
from tests.support.gateway_server import Served, serving, until

AT = "/api"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, read."""

    status: int
    body: Any
    headers: Any


class Client:
    """A client of Blade's REST."""

    def __init__(self, served: Served, token: str | None = None) -> None:
        self.served = served
        self.gateway: Gateway = served.gateway
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def known_as(self, token: str) -> "Client":
        return Client(self.served, token)

    async def call(self, method: str, path: str, body: Any = None) -> Answer:
        """`body` as JSON, or as it is if it is bytes or a form."""
        raw = isinstance(body, bytes | aiohttp.FormData)
        async with self.served.http.request(
            method, aiohttp.client.URL(self.served.url(f"{AT}{path}"), encoded=True), headers=self.headers,
            data=body if raw else None, json=None if raw else body,
        ) as response:
            as_json = response.content_type == "application/json"
            return Answer(response.status, await (response.json() if as_json else response.read()), response.headers)

    async def get(self, path: str) -> Answer:
        return await self.call("GET", path)

    async def post(self, path: str, body: Any = None) -> Answer:
        return await self.call("POST", path, {} if body is None else body)

    async def put(self, path: str, body: Any) -> Answer:
        return await self.call("PUT", path, body)

    async def patch(self, path: str, body: Any) -> Answer:
        return await self.call("PATCH", path, body)

    async def delete(self, path: str) -> Answer:
        return await self.call("DELETE", path)

    async def session(self, owner: str = "", title: str = "a talk") -> str:
        view = await self.gateway.sessions.create(owner, "demo", title=title)
        return view.session_id


@asynccontextmanager
async def blade(folder: Path, **settings: Any) -> AsyncIterator[Client]:
    async with serving(folder, **{"dialects": {"blade": {}}, "log": "memory", **settings}) as served:
        yield Client(served)


async def say(client: Client, session_id: str, text: str, *, owner: str = "") -> None:
    """One whole turn."""
    sessions = client.gateway.sessions
    await sessions.submit(owner, session_id, [m.SendMessage(content=text)])
    view = await sessions.get(owner, session_id)
    await until(lambda: view.status is m.SessionStatus.IDLE)
