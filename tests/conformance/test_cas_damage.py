"""CAS servers whose every answer may be damaged at random: examiners say what is wrong and do not stumble."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from conformance.faults.cas import CasServer
from conformance.faults.cas.memory import Body
from conformance.faults.damage import damaged
from conformance.kit.verdict import Report, Verdict

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"


class DamagedServer(CasServer):
    """Damages a share of its bodies and events."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__(KEY)
        self.chance, self.share = random.Random(seed), share

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await super().answer(request, handler)
        if not isinstance(response, web.Response) or not response.body or self.chance.random() > self.share:
            return response
        assert isinstance(response.body, bytes)
        return web.json_response(damaged(orjson.loads(response.body), self.chance), status=response.status)

    def frame(self, body: Body) -> bytes:
        whole = super().frame(body)
        if self.chance.random() > self.share:
            return whole
        head = whole.partition(b"data: ")[0]
        return head + b"data: " + orjson.dumps(damaged(body, self.chance)) + b"\n\n"


@pytest.mark.parametrize(("seed", "share"), [(1, 0.01), (2, 0.02), (3, 0.04), (4, 0.1)])
async def test_no_examiner_stumbles_over_a_damaged_server(examine_cas: Examine, seed: int, share: float) -> None:
    report = await examine_cas(DamagedServer(seed, share), within=1.0)
    assert report.verdict is Verdict.FAILS
    assert [f"{result.name} {result.remark}" for result in report.results if "stumbled" in result.remark] == []
