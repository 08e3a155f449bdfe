"""The correct server passes entirely; no MUST is held against the liberties; the suite leaves nothing behind."""

from collections.abc import Awaitable, Callable

import pytest

from conformance.faults.zenflux.liberties import LIBERTIES
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict
from conformance.zenflux.profile import ZenfluxProfile

Examine = Callable[..., Awaitable[Report]]
PATIENT = 30.0
"""A correct server is given time: the machine may be busy with other things."""


def troubles(report: Report) -> list[str]:
    return [f"{result.name}: {result.remark}" for result in report.results if result.outcome is not Outcome.PASSED]


async def test_the_reference_server_conforms_and_is_left_clean(examine_zenflux: Examine) -> None:
    server = ZenfluxServer()
    report = await examine_zenflux(server, within=PATIENT)
    assert troubles(report) == []
    assert (report.verdict, report.exit_code) == (Verdict.CONFORMS, 0)
    assert server.is_clean


@pytest.mark.parametrize("server", LIBERTIES, ids=lambda server: server.__name__)
async def test_liberties_are_not_held_against_a_server(
    examine_zenflux: Examine, zenflux: Suite, server: type[ZenfluxServer]
) -> None:
    musts = [item.id for item in zenflux.catalogue.requirements if item.level is Level.MUST]
    report = await examine_zenflux(server(), *musts, within=PATIENT)
    decided = [finding for finding in report.findings if finding.outcome is not Outcome.NOT_APPLICABLE]
    assert [f"{item.requirement.id}: {item.grave[0].remark}" for item in decided if item.grave] == []
    assert report.verdict is Verdict.CONFORMS


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
