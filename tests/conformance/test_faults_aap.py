"""Every fault is caught by the requirements and the cases it names; every case is proven by a fault."""

from collections.abc import Awaitable, Callable

import pytest

from conformance.faults.aap import FAULTS
from conformance.faults.fault import Fault
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.liberties import combined

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_the_fault_is_caught(examine: Examine, fault: Fault) -> None:
    report = await examine(fault.server(key=KEY), *fault.requirements)
    failed = {result.name for result in report.results if result.outcome is Outcome.FAILED}
    assert {item.requirement.id for item in report.of(Outcome.FAILED)} == set(fault.requirements)
    assert failed >= set(fault.cases)
    assert all(result.expected and result.seen for result in report.results if result.outcome is Outcome.FAILED)


def test_every_case_is_proven_by_a_fault(aap: Suite) -> None:
    proven = {name for fault in FAULTS.values() for name in fault.cases}
    assert proven == {case.name for case in aap.cases}


def test_every_requirement_is_proven_by_a_fault(aap: Suite) -> None:
    assert {name for fault in FAULTS.values() for name in fault.requirements} == aap.catalogue.ids


def test_faults_have_names_and_sentences_of_their_own() -> None:
    assert len({fault.server for fault in FAULTS.values()}) == len(FAULTS) > 100
    assert all(fault.sentence.endswith(".") for fault in FAULTS.values())


@pytest.mark.parametrize(
    "names", ["option-without-default invented-reason calls-by-another-name", "one-id-for-all no-room-ever"]
)
async def test_a_whole_examination_of_a_wrong_server_finishes(examine: Examine, aap: Suite, names: str) -> None:
    report = await examine(combined([FAULTS[name].server for name in names.split()])(key=KEY))
    assert len(report.results) == len(aap.cases)
    assert report.verdict is Verdict.FAILS
    assert [result.reason for result in report.results if "stumbled" in (result.reason or "")] == []
