"""A whole gateway in the loop of a test, and a client that talks HTTP to it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from gateway.app import Gateway
from gateway.composition import load_components
from gateway.config import load_config
from gateway.ports import Clock
from gateway.reload import ReloadRequests
from tests.simulation import SimulatedLoop
from tests.support.response_checks import check_responses


async def until(is_true: Callable[[], object]) -> None:
    """Wait until something has become true: the server has no event for every state a test may wait for."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(300):
        if isinstance(loop, SimulatedLoop):
            await loop.until(is_true)
        while not is_true():  # noqa: ASYNC110  # the loops of the system have no step after which to look
            await asyncio.sleep(0.01)


def simulation() -> SimulatedLoop:
    """The loop this test runs in."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop


DUMPER = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper
PLAIN: dict[str, Any] = {"dialects": {"aap": {}, "cas": {}}, "agents": {"demo": {"backend": "demo"}}}


class Served:
    """The gateway, its address, and a client that talks to it."""

    def __init__(
        self, gateway: Gateway, address: str, http: aiohttp.ClientSession, runner: web.AppRunner | None = None,
    ) -> None:
        self.gateway = gateway
        self.address = address
        self.http = http
        self.runner = runner

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def url(self, path: str) -> str:
        return f"{self.address}{path}"


@asynccontextmanager
async def serving(
    folder: Path, clock: Clock | None = None, port: int = 0, reloads: ReloadRequests | None = None, **settings: Any,
) -> AsyncIterator[Served]:
    """Serve the demo agent with these settings on a free port, until the block ends.

    What is stored is forgotten then. A test of what a file has, or of another start, says `log="sqlite"`.
    """
    write_settings(folder, **settings)
    components = load_components(load_config(folder / "config.yaml"))
    gateway = Gateway(components, clock or simulation().wall_clock, reloads)
    misfits = check_responses(gateway)
    runner = gateway.runner(shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    gateway.readiness.mark_ready()
    host, port = runner.addresses[0][:2]
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300)) as http:
            yield Served(gateway, f"http://{host}:{port}", http, runner)
    finally:
        await runner.cleanup()
        await gateway.close()
    assert not misfits, "\n".join(["responses that do not fit the OpenAPI document:", *misfits[:20]])


def write_settings(folder: Path, **settings: Any) -> None:
    text = yaml.dump({**PLAIN, "log": "memory", "data": str(folder / "data"), **settings}, Dumper=DUMPER)
    (folder / "config.yaml").write_text(text)


@asynccontextmanager
async def reloadable(gateway: Gateway, requests: ReloadRequests) -> AsyncIterator[None]:
    """Carry out requests to read the settings of the gateway again, until the block ends."""
    async def reload() -> None:
        file = gateway.components.config.file
        assert file is not None
        gateway.replace_components(load_components(load_config(file), gateway.components))

    task = asyncio.create_task(requests.serve(reload))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def reachable_from_outside(served: Served) -> AsyncIterator[str]:
    """The address of the same server on a port of the machine: for clients in other threads and processes."""
    assert served.runner is not None
    server = await simulation().create_real_server(served.runner.server, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
