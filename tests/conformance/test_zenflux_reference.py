"""The correct ZenFlux server with other profiles; see `test_reference` and `test_variations` for whole examinations."""

from collections.abc import Awaitable, Callable

from conformance.faults.fault import load_faults
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict
from conformance.zenflux.profile import ZenfluxProfile
from tests.support.conformance.examinations import troubles

Examine = Callable[..., Awaitable[Report]]


async def test_an_empty_profile_makes_things_not_testable_and_nothing_wrong(examine_zenflux: Examine) -> None:
    report = await examine_zenflux(ZenfluxServer(), profile=ZenfluxProfile())
    assert report.of(Outcome.FAILED) == ()
    assert not any("stumbled" in (result.reason or "") for result in report.results)
    assert len(report.of(Outcome.NOT_TESTABLE)) > 80


async def test_a_profile_may_name_an_agent(examine_zenflux: Examine, zenflux: Suite) -> None:
    settings = zenflux.read_profile().model_copy(update={"agent": "reference"})
    report = await examine_zenflux(ZenfluxServer(), "ZF-WS-08", "ZF-HTTP-3.1-01", profile=settings)
    assert troubles(report) == []


async def test_a_profile_may_name_an_agent_nobody_has(examine_zenflux: Examine, zenflux: Suite) -> None:
    settings = zenflux.read_profile().model_copy(update={"agent": "nobody"})
    report = await examine_zenflux(ZenfluxServer(), "ZF-WS-01", profile=settings)
    assert report.verdict is Verdict.FAILS


async def test_a_tick_is_not_waited_for_where_there_is_no_time(examine_zenflux: Examine, zenflux: Suite) -> None:
    settings = zenflux.read_profile()
    report = await examine_zenflux(ZenfluxServer(), "ZF-WS-18", profile=settings, within=1.0)
    assert "no 33 s to wait" in report.results[0].remark


async def test_no_heartbeat_in_the_profile_means_that_nobody_waits_for_one(
    examine_zenflux: Examine, zenflux: Suite
) -> None:
    settings = zenflux.read_profile().model_copy(update={"heartbeat": None})
    report = await examine_zenflux(ZenfluxServer(), "ZF-WS-18", profile=settings)
    assert [result.reason for result in report.results] == ["the profile has no entry `heartbeat`"]


async def test_what_was_expected_of_listed_messages_is_what_was_said(examine_zenflux: Examine) -> None:
    report = await examine_zenflux(load_faults("zenflux")["one-message"].server(), "ZF-HTTP-3.2-06")
    failed = [(result.expected, result.seen) for result in report.results if result.outcome is Outcome.FAILED]
    assert ('what the user said: ["Message 0","Message 1"]', "[]") in failed
