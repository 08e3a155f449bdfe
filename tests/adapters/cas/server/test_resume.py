"""A session's stream in pieces: Last-Event-ID after every break of the line, and after the death of the server."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.connection_faults import KillableServerInLoop, blocks, breaking_proxy
from tests.support.gateway_server import serving

AT = "/api/v1/cloud/sessions"
NEW = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}
DELTAS = "event_deltas[]=agent.message&event_deltas[]=agent.thinking"
IDLE = b"event: session.status_idle\n"


class Reader:
    """A client that keeps the events as they came, and resumes after the last one."""

    def __init__(self, http: aiohttp.ClientSession, session: str, query: str) -> None:
        self.http = http
        self.path = f"{AT}/{session}/events/stream?{query}"
        self.heard: list[bytes] = []

    async def listen(self, address: str) -> None:
        """Until the session is idle or the line breaks."""
        headers, body = {}, b""
        if self.heard:
            headers["Last-Event-ID"] = self.heard[-1].split(b"\n")[0].removeprefix(b"id: ").decode()
        try:
            async with self.http.get(f"{address}{self.path}", headers=headers) as response:
                assert response.status == 200, await response.text()
                while IDLE not in b"".join(blocks(body)[-1:]) and (piece := await response.content.readany()):
                    body += piece
        except (aiohttp.ClientError, ConnectionError):
            pass
        self.heard += blocks(body)

    @property
    def is_over(self) -> bool:
        return bool(self.heard) and IDLE in self.heard[-1]


async def post(http: aiohttp.ClientSession, url: str, body: Any) -> Any:
    async with http.post(url, json=body) as response:
        assert response.status < 300, await response.text()
        return await response.json()


async def begun(http: aiohttp.ClientSession, address: str, words: str) -> str:
    session = str((await post(http, f"{address}{AT}", NEW))["id"])
    await post(http, f"{address}{AT}/{session}/events", {"events": [{"type": "user.message", "content": words}]})
    return session


async def listen_to_the_end(reader: Reader, address: str) -> None:
    async with asyncio.timeout(40):
        while not reader.is_over:
            await reader.listen(address)


async def whole(http: aiohttp.ClientSession, address: str, session: str, query: str) -> list[bytes]:
    again = Reader(http, session, f"{query}&stream_start=replay")
    await again.listen(address)
    return again.heard


@pytest.mark.parametrize("query", ["", DELTAS], ids=["events", "deltas"])
@pytest.mark.parametrize("seed", range(2))
async def test_over_a_line_that_breaks(tmp_path: Path, seed: int, query: str) -> None:
    async with serving(tmp_path, log="sqlite") as served, breaking_proxy(served.port, seed) as line:
        session = await begun(served.http, served.address, "/think /slow 10 /burst 40 /tool clock /fork and so on")
        reader = Reader(served.http, session, query)
        await listen_to_the_end(reader, line.address)
        assert line.breaks
        assert reader.heard == await whole(served.http, served.address, session, query), "byte for byte"


async def test_over_the_death_of_the_server(restartable_server: KillableServerInLoop) -> None:
    timeout = aiohttp.ClientTimeout(total=60)
    async with breaking_proxy(restartable_server.port, 3) as line, aiohttp.ClientSession(timeout=timeout) as http:
        session = await begun(http, restartable_server.address, "/slow 400")
        reader = Reader(http, session, DELTAS)
        while line.breaks < 3:
            await reader.listen(line.address)
        assert not reader.is_over
        await restartable_server.die_and_come_back()
        await listen_to_the_end(reader, line.address)
        assert reader.heard == await whole(http, restartable_server.address, session, DELTAS)
        assert b"event: session.error\n" in reader.heard[-2], "the turn was closed when the server came back"
