"""Every fault of a Blade server is caught by the requirements and cases it names; every case is proven by a fault."""

from collections.abc import Awaitable, Callable

import pytest

from conformance.faults.blade.every import FAULTS
from conformance.faults.fault import Fault
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.liberties import combined

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"
PATIENCE = 2.0


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_the_fault_is_caught(examine_blade: Examine, fault: Fault) -> None:
    report = await examine_blade(fault.server(key=KEY), *fault.requirements, within=PATIENCE, clears=False)
    failed = {result.name for result in report.results if result.outcome is Outcome.FAILED}
    assert {item.requirement.id for item in report.of(Outcome.FAILED)} == set(fault.requirements)
    assert failed >= set(fault.cases)
    assert all(result.expected and result.seen for result in report.results if result.outcome is Outcome.FAILED)


def test_every_case_is_proven_by_a_fault(blade: Suite) -> None:
    proven = {name for fault in FAULTS.values() for name in fault.cases}
    assert proven == {case.name for case in blade.cases}


def test_every_requirement_that_applies_is_proven_by_a_fault(blade: Suite) -> None:
    applying = {item.id for item in blade.catalogue.requirements if not item.not_applicable}
    assert {name for fault in FAULTS.values() for name in fault.requirements} == applying


def test_faults_have_names_and_sentences_of_their_own() -> None:
    assert len({fault.server for fault in FAULTS.values()}) == len(FAULTS) > 200
    assert all(fault.sentence.endswith(".") for fault in FAULTS.values())


@pytest.mark.parametrize("names", ["turn-without-window history-backwards content-is-the-delta", "created-by-id"])
async def test_a_whole_examination_of_a_wrong_server_finishes(examine_blade: Examine, blade: Suite, names: str) -> None:
    server = combined([FAULTS[name].server for name in names.split()])
    report = await examine_blade(server(key=KEY), within=1.0)
    assert len(report.results) == len(blade.cases)
    assert report.verdict in (Verdict.FAILS, Verdict.INCOMPLETE)
    assert [result.remark for result in report.results if "stumbled" in (result.reason or "")] == []
