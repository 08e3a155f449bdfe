"""An AAP server with a stream whose first line does not end."""

from gateway.ports.remote import Timeouts
from tests.adapters.aap.client import test_turn_stream as aap
from tests.support.client.byte_server import endless, says, serving

FAILURE = "an event of more than"


async def hear(timeouts: Timeouts) -> None:
    async with serving(aap.META, aap.MADE, endless, says(b"{}", 404)) as server:
        await aap.hear(server, timeouts)
