"""A reference server, right or wrong, on a port of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web


class Servable(Protocol):
    """A server of any dialect, and where it is mounted."""

    mount: str

    def app(self) -> web.Application: ...


@asynccontextmanager
async def served(server: Servable) -> AsyncIterator[str]:
    """The address at which the server can be examined for as long as the context lasts."""
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}{server.mount}"
    finally:
        await runner.cleanup()
