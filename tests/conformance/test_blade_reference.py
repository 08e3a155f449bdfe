"""The correct Blade server passes entirely; nobody stumbles over a damaged one. Liberal ones: `test_liberties`."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web

from conformance.blade.profile import BladeProfile
from conformance.faults.blade.bare import SeedsOnly
from conformance.faults.blade.ledger import Session
from conformance.faults.blade.reference import BladeServer
from conformance.faults.damage import damaged
from conformance.kit.requirement import Level
from conformance.kit.verdict import Outcome, Report, Verdict

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"


async def test_what_the_seeds_say_is_enough_for_every_must(examine_blade: Examine) -> None:
    report = await examine_blade(SeedsOnly(key=KEY), within=8.0, at_once=16)
    found = {item.requirement.id: (item.requirement.level, item.outcome) for item in report.findings}
    assert {name for name, (level, outcome) in found.items() if level is Level.MUST and is_bad(outcome)} == set()
    assert sum(level is not Level.MUST and is_bad(outcome) for level, outcome in found.values()) > 10


def is_bad(outcome: Outcome) -> bool:
    return outcome in (Outcome.FAILED, Outcome.NOT_TESTABLE)


async def test_an_empty_profile_makes_things_not_testable_and_nothing_wrong(examine_blade: Examine) -> None:
    report = await examine_blade(BladeServer(key=KEY), profile=BladeProfile())
    assert report.of(Outcome.FAILED) == ()
    assert [result.remark for result in report.results if "stumbled" in result.remark] == []
    assert len(report.of(Outcome.NOT_TESTABLE)) > 80
    assert report.exit_code == 3


class DamagedServer(BladeServer):
    """Damages a share of its bodies and events."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__(KEY)
        self.chance, self.share = random.Random(seed), share

    async def answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await super().answer(request, handler)
        spared = request.path.startswith("/socket.io/") or self.chance.random() > self.share
        if spared or not isinstance(response, web.Response) or response.content_type != "application/json":
            return response
        assert isinstance(response.body, bytes)
        return web.json_response(damaged(orjson.loads(response.body), self.chance), status=response.status)

    def events(self, session: Session, name: str, body: Any) -> list[tuple[str, Any]]:
        return [(name, damaged(body, self.chance) if self.chance.random() < self.share else body)]


@pytest.mark.parametrize(("seed", "share"), [(1, 0.02), (2, 0.1), (3, 0.3)])
async def test_no_examiner_stumbles_over_a_damaged_server(examine_blade: Examine, seed: int, share: float) -> None:
    report = await examine_blade(DamagedServer(seed, share), within=0.8)
    assert report.verdict in (Verdict.FAILS, Verdict.INCOMPLETE)
    assert [f"{it.name}: {it.remark}" for it in report.results if "stumbled" in it.remark] == []
