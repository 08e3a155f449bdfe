"""A Blade server with a packet that is too long."""

from gateway.ports.remote import Timeouts
from tests.adapters.blade.client import test_socketio as blade

FAILURE = "violates the WebSocket protocol"


async def hear(timeouts: Timeouts) -> None:
    await blade.hear(blade.saying("42" + "x" * 100_000_000), timeouts)
