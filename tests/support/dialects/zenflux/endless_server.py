"""A ZenFlux server with a frame that is too long."""

from gateway.ports.remote import Timeouts
from tests.adapters.zenflux.client import test_remote_run as zenflux
from tests.support.dialects.zenflux.cutting_proxy import remote, scripted_server

FAILURE = "not a WebSocket frame"


async def hear(timeouts: Timeouts) -> None:
    script = zenflux.saying(zenflux.event("message_start"), zenflux.raw("x" * 100_000_000))
    async with scripted_server(script) as server, remote(server.address, timeouts) as there:
        async for _ in there.start_turn("conversation", zenflux.HELLO):
            pass
