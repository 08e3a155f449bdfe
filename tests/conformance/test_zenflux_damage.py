"""A ZenFlux server whose every answer and frame may be damaged: examiners say what is wrong and do not stumble."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from conformance.faults.damage import damaged
from conformance.faults.zenflux.memory import Body
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line
from conformance.kit.verdict import Report, Verdict

Examine = Callable[..., Awaitable[Report]]


class DamagedServer(ZenfluxServer):
    """Damages a share of its bodies, frames and events."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__()
        self.chance, self.share = random.Random(seed), share

    def perhaps(self, value: Any) -> Any:
        return damaged(value, self.chance) if self.chance.random() < self.share else value

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await super().answer(request, handler)
        if not isinstance(response, web.Response) or not isinstance(response.body, bytes):
            return response
        return web.json_response(self.perhaps(orjson.loads(response.body)), status=response.status)

    async def send(self, line: Line, frame: Body) -> None:
        await super().send(line, self.perhaps(frame))

    def chunk(self, envelope: Body) -> bytes:
        return super().chunk(self.perhaps(envelope))


@pytest.mark.parametrize(("seed", "share"), [(1, 0.02), (2, 0.1)])
async def test_no_examiner_stumbles_over_a_damaged_server(examine_zenflux: Examine, seed: int, share: float) -> None:
    report = await examine_zenflux(DamagedServer(seed, share), within=0.6, at_once=16)
    assert report.verdict is Verdict.FAILS
    assert [result.remark for result in report.results if "stumbled" in result.remark] == []
