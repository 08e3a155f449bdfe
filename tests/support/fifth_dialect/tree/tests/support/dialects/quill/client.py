"""A plain Quill client for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson


@asynccontextmanager
async def writing(
    http: aiohttp.ClientSession, address: str, talk: str, text: str,
) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
    """Write a line, and read the events of the answer as they come."""
    async with http.post(f"{address}/quill/talks/{talk}/lines", json={"text": text}) as response:
        assert response.status == 200, await response.text()
        yield events(response.content)


async def begin(http: aiohttp.ClientSession, address: str) -> str:
    async with http.post(f"{address}/quill/talks") as response:
        assert response.status == 201, await response.text()
        return str((await response.json())["talk"])


async def events(content: aiohttp.StreamReader) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in content:
        if line.startswith(b"event: "):
            name = line[7:].decode().strip()
        elif line.startswith(b"data: "):
            yield name, orjson.loads(line[6:])
