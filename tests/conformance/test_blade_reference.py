"""The correct Blade server passes: what the seeds say is enough, and no profile is needed.
Before every MUST: `make prove ARGS="--only false_alarms"`."""

from collections.abc import Awaitable, Callable

from conformance.blade.profile import BladeProfile
from conformance.faults.blade.minimal import SeedsOnly
from conformance.faults.blade.server import BladeServer
from conformance.faults.steps import variant
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"


async def test_what_the_seeds_say_is_enough_for_every_must(examine_blade: Examine, blade: Suite) -> None:
    listed = blade.catalogue.requirements
    musts = [item.id for item in listed if item.level is Level.MUST][::6]
    others = [item.id for item in listed if item.level is not Level.MUST and item.id[:6] in ("BL-RES", "BL-GAP")]
    report = await examine_blade(variant(BladeServer, SeedsOnly)(key=KEY), *musts, *others, within=8.0, at_once=16)
    bad = {item.requirement.id for item in report.findings if item.outcome in (Outcome.FAILED, Outcome.NOT_TESTABLE)}
    assert bad.intersection(musts) == set()
    assert len(bad.intersection(others)) > 10


async def test_an_empty_profile_makes_things_not_testable_and_nothing_wrong(examine_blade: Examine) -> None:
    report = await examine_blade(BladeServer(key=KEY), profile=BladeProfile())
    assert report.of(Outcome.FAILED) == ()
    assert [result.remark for result in report.results if "stumbled" in result.remark] == []
    assert len(report.of(Outcome.NOT_TESTABLE)) > 80
    assert report.exit_code == 3
