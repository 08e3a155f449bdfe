"""A Quill page: it writes one line, and stops the agent if it waits for anything."""

from tests.support.dialects.quill.client import begin, writing
from tests.support.dialects.quill.pair_reader import PairReader

from tests.support.gateway_server import Served


class PairClient:
    """Talks at one server."""

    can_bring = ()

    def __init__(self, served: Served) -> None:
        self.served = served

    async def converse(self, text: str, *, stop_at: int = 0, kindly: bool = True, brings: str = "") -> PairReader:
        reading, http = PairReader(), self.served.http
        talk = await begin(http, self.served.address)
        async with writing(http, self.served.address, talk, text) as told:
            async for name, body in told:
                reading.hear(name, body)
                if name == "words" and reading.deltas == stop_at:
                    await self._stop(talk)
        if reading.is_waiting:
            await self._stop(talk)
        return reading

    async def _stop(self, talk: str) -> None:
        async with self.served.http.delete(self.served.url(f"/quill/talks/{talk}/lines")) as response:
            assert response.status == 204, await response.text()
