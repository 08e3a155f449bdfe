"""CAS's catalog on a real port, for tests that talk HTTP to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp

from gateway.app import Gateway
from gateway.http import Context
from tests.support.gateway_server import Served, serving

AT = "/api/v1/cloud"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, read."""

    status: int
    body: Any
    headers: Any


class Catalog:
    """A client of the catalog."""

    def __init__(self, served: Served, token: str | None = None) -> None:
        self.served = served
        self.gateway: Gateway = served.gateway
        self.http: aiohttp.ClientSession = served.http
        self.base = served.url(AT)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def known_as(self, token: str) -> "Catalog":
        return Catalog(self.served, token)

    @property
    def context(self) -> Context:
        return self.gateway.contexts["cas"]

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """`body` as JSON, or as it is if it is bytes or a form."""
        raw = isinstance(body, bytes | aiohttp.FormData)
        sent = {name.replace("_", "-"): value for name, value in headers.items()} | self.headers
        async with self.http.request(
            method, f"{self.base}{path}", headers=sent, data=body if raw else None, json=None if raw else body,
        ) as response:
            as_json = response.content_type == "application/json"
            return Answer(response.status, await (response.json() if as_json else response.read()), response.headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return await self.call("POST", path, body, **headers)

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, **headers)

    async def delete(self, path: str, **headers: str) -> Answer:
        return await self.call("DELETE", path, **headers)

    async def made(self, path: str, body: Any) -> dict[str, Any]:
        answer = await self.post(path, body)
        assert answer.status == 201, answer
        made: dict[str, Any] = answer.body
        return made


def form(
    content: bytes = b"hello", filename: str = "x.txt", media_type: str | None = None, **fields: str,
) -> aiohttp.FormData:
    made = aiohttp.FormData()
    for field, text in fields.items():
        made.add_field(field, text)
    made.add_field("file", BytesIO(content), filename=filename, content_type=media_type)
    return made


@asynccontextmanager
async def catalog(folder: Path, **settings: Any) -> AsyncIterator[Catalog]:
    async with serving(folder, **{"dialects": {"cas": {}}, "log": "memory", **settings}) as served:
        yield Catalog(served)
