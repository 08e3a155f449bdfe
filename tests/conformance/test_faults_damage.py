"""Servers whose every answer may be damaged at random: examiners say what is wrong and do not stumble."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from conformance.faults.damage import damaged
from conformance.faults.reference import ReferenceServer
from conformance.kit.verdict import Report, Verdict

Examine = Callable[..., Awaitable[Report]]


class DamagedServer(ReferenceServer):
    """Damages a share of its bodies and events."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__()
        self.chance, self.share = random.Random(seed), share

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await super().answer(request, handler)
        if not isinstance(response, web.Response) or not response.body or self.chance.random() > self.share:
            return response
        assert isinstance(response.body, bytes)
        return web.json_response(damaged(orjson.loads(response.body), self.chance), status=response.status)

    def frame(self, name: str, body: Any) -> bytes:
        return super().frame(name, damaged(body, self.chance) if self.chance.random() < self.share else body)


def test_damage_is_done() -> None:
    value = {"a": [1, {"b": 2}]}
    seen = [damaged(value, random.Random(seed)) for seed in range(50)]
    assert value == {"a": [1, {"b": 2}]}
    assert all(item != value for item in seen)
    assert {"a": [1, {}]} in seen


@pytest.mark.parametrize(("seed", "share"), [(1, 0.02), (2, 0.1), (3, 0.1), (4, 0.3)])
async def test_no_examiner_stumbles_over_a_damaged_server(examine: Examine, seed: int, share: float) -> None:
    report = await examine(DamagedServer(seed, share), within=1.0)
    assert report.verdict is Verdict.FAILS
    assert [result.remark for result in report.results if "stumbled" in result.remark] == []
