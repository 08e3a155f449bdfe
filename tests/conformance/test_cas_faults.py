"""Every fault of a CAS server is caught by the requirements and the cases it names; every case is proven by a fault."""

from collections.abc import Awaitable, Callable

import pytest

from conformance.faults.cas import FAULTS, MODULES
from conformance.faults.fault import Fault, faults_of
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.liberties import combined

Examine = Callable[..., Awaitable[Report]]
KEY = "the-key-of-the-examiners"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_the_fault_is_caught(examine_cas: Examine, fault: Fault) -> None:
    report = await examine_cas(fault.server(key=KEY), *fault.requirements, within=1.0, clears=False)
    failed = {result.name for result in report.results if result.outcome is Outcome.FAILED}
    assert {item.requirement.id for item in report.of(Outcome.FAILED)} == set(fault.requirements)
    assert failed >= set(fault.cases)
    assert [result.reason for result in report.results if "stumbled" in (result.reason or "")] == []
    assert all(result.expected and result.seen for result in report.results if result.outcome is Outcome.FAILED)


def test_every_case_is_proven_by_a_fault(cas: Suite) -> None:
    proven = {name for fault in FAULTS.values() for name in fault.cases}
    assert proven == {case.name for case in cas.cases}


def test_every_requirement_is_proven_by_a_fault(cas: Suite) -> None:
    assert {name for fault in FAULTS.values() for name in fault.requirements} == cas.catalogue.ids


def test_faults_have_names_and_sentences_of_their_own() -> None:
    assert len(faults_of(*MODULES)) == len({fault.sentence for fault in FAULTS.values()}) == len(FAULTS) > 150
    assert all(fault.sentence.endswith(".") for fault in FAULTS.values())


@pytest.mark.parametrize("names", ["bare-errors one-turn-for-all", "closed-after-turns pages-overlap"])
async def test_a_whole_examination_of_a_wrong_server_finishes(examine_cas: Examine, cas: Suite, names: str) -> None:
    server = combined([FAULTS[name].server for name in names.split()])
    report = await examine_cas(server(key=KEY), within=1.0)
    assert len(report.results) == len(cas.cases)
    assert report.verdict is Verdict.FAILS
    assert [result.reason for result in report.results if "stumbled" in (result.reason or "")] == []
