"""A whole gateway on a real port of this machine, for tests that talk HTTP to it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from gateway.app import Gateway
from gateway.config import load_config
from gateway.parts import load_parts
from gateway.ports import Clock


async def until(true: Callable[[], object]) -> None:
    """Wait, for a bounded time, until something has become true."""
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110  # the server has no event for every state a test may wait for
            await asyncio.sleep(0.01)


PLAIN: dict[str, Any] = {"dialects": {"aap": {}, "cas": {}}, "agents": {"demo": {"backend": "demo"}}}


class Served:
    """The gateway, its address, and a client that talks to it."""

    def __init__(self, gateway: Gateway, address: str, http: aiohttp.ClientSession) -> None:
        self.gateway = gateway
        self.address = address
        self.http = http

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def url(self, path: str) -> str:
        return f"{self.address}{path}"


@asynccontextmanager
async def serving(folder: Path, clock: Clock = time.time, **settings: Any) -> AsyncIterator[Served]:
    """Serve the demo agent with these settings on a free port, until the block ends."""
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({**PLAIN, "data": str(folder / "data"), **settings}))
    gateway = Gateway(load_parts(load_config(file)), clock)
    runner = web.AppRunner(gateway.web, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    gateway.readiness.ready()
    host, port = runner.addresses[0][:2]
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as http:
            yield Served(gateway, f"http://{host}:{port}", http)
    finally:
        await runner.cleanup()
        await gateway.close()
