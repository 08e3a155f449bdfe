"""The correct Blade server passes: what the seeds say is enough, and no profile is needed. See `test_liberties`."""

from collections.abc import Awaitable, Callable

from conformance.blade.profile import BladeProfile
from conformance.faults.blade.bare import SeedsOnly
from conformance.faults.blade.reference import BladeServer
from conformance.kit.requirement import Level
from conformance.kit.verdict import Outcome, Report

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
