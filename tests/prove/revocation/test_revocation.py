"""Real servers, a real Redis and the real command: how long a revoked key still has something open."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.redis_server import redis_of_this_run
from tests.support.server_process import running

STREAMS = 20
"""Of each kind, on each server."""


@pytest.fixture(params=["sqlite", "redis"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[list[str], Path]]:
    """One server with a file, or three with a Redis; and the settings of the first."""
    log = "sqlite" if request.param == "sqlite" else f"{redis_of_this_run().url}?prefix={tmp_path.name}"
    with ExitStack() as stack:
        addresses = []
        for number in range(1 if log == "sqlite" else 3):
            folder = tmp_path / str(number)
            folder.mkdir()
            served = stack.enter_context(running(
                folder, auth="keys", dialects=ALL_DIALECTS, log=log, data=str(folder / "data")))
            addresses.append(served.address)
        yield addresses, tmp_path / "0" / "config.yaml"


def keys(config: Path, *words: str) -> str:
    command = [sys.executable, "-m", "gateway", "keys", *words, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


async def streamed(http: aiohttp.ClientSession, address: str, session: str) -> float:
    """When a stream of the session has ended."""
    try:
        async with http.get(f"{address}/api/v1/cloud/sessions/{session}/events/stream") as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()
    except aiohttp.ClientPayloadError:
        pass
    return time.monotonic()


async def connected(http: aiohttp.ClientSession, address: str) -> float:
    async with http.ws_connect(f"{address}/api/v1/ws/chat") as ws:
        async for _ in ws:
            pass
        return time.monotonic()


async def test_what_a_removed_key_has_open_ends_within_a_second(servers: tuple[list[str], Path]) -> None:
    addresses, config = servers
    key = await asyncio.to_thread(keys, config, "add", "ann")
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}, connector=connector) as http:
        async with http.post(f"{addresses[0]}/aap/sessions", json={"agent": {"name": "demo"}}) as answer:
            session = (await answer.json())["sessionId"]
        turn = {"messages": [{"role": "user", "content": "/slow 10000"}], "stream": "none"}
        running_turn = asyncio.create_task(http.post(f"{addresses[0]}/aap/sessions/{session}/turns", json=turn))
        ends = [asyncio.create_task(one) for address in addresses for _ in range(STREAMS)
                for one in (streamed(http, address, session), connected(http, address))]
        await asyncio.sleep(3)
        assert not any(end.done() for end in ends), "all are open"
        await asyncio.to_thread(keys, config, "remove", "ann")
        removed = time.monotonic()
        waits = [await end - removed for end in ends]
        with pytest.raises(aiohttp.ClientError):
            await running_turn
    print(f"{len(waits)} streams and sockets of {len(addresses)} servers ended {min(waits):.2f} to {max(waits):.2f} s "
          f"after the command")
    assert max(waits) < 1.0
