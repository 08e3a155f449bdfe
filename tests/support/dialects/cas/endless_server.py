"""A CAS server with a stream whose first line does not end."""

from gateway.ports.remote import Timeouts
from tests.adapters.cas.client import test_foreign_servers as cas
from tests.support.client.byte_server import endless

FAILURE = "an event of more than"


async def hear(timeouts: Timeouts) -> None:
    raise await cas.failure(cas.ScriptedServer(stream=[endless]), timeouts)
