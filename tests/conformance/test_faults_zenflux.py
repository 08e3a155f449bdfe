"""Every fault is caught by the requirements and the cases it names; every case is proven by a fault."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from conformance.faults.fault import Fault
from conformance.faults.zenflux import catalogue
from conformance.faults.zenflux.catalogue import FAULTS
from conformance.kit.suite import Suite
from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.liberties import combined

Examine = Callable[..., Awaitable[Report]]
SOCKET = {"zenflux.bad_frames", "zenflux.bad_lines", "zenflux.bad_envelopes", "zenflux.bad_orders"}
STORIES = {"zenflux.bad_events", "zenflux.bad_messages", "zenflux.bad_blocks"}
REST = {"zenflux.bad_chats", "zenflux.bad_confirmations", "zenflux.bad_rooms", "zenflux.bad_answers"}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_the_fault_is_caught(examine_zenflux: Examine, fault: Fault) -> None:
    report = await examine_zenflux(fault.server(), *fault.requirements, within=0.8, clears=False)
    failed = {result.name for result in report.results if result.outcome is Outcome.FAILED}
    assert {item.requirement.id for item in report.of(Outcome.FAILED)} == set(fault.requirements)
    assert failed >= set(fault.cases)
    assert all(result.expected and result.seen for result in report.results if result.outcome is Outcome.FAILED)
    assert [result.reason for result in report.results if "stumbled" in (result.reason or "")] == []


def test_every_case_is_proven_by_a_fault(zenflux: Suite) -> None:
    proven = {name for fault in FAULTS.values() for name in fault.cases}
    assert proven == {case.name for case in zenflux.cases}


def test_every_requirement_is_proven_by_a_fault(zenflux: Suite) -> None:
    applicable = {item.id for item in zenflux.catalogue.requirements if not item.not_applicable}
    assert {name for fault in FAULTS.values() for name in fault.requirements} == applicable


def test_no_file_of_faults_is_left_out() -> None:
    modules = {fault.server.__module__.removeprefix("conformance.faults.") for fault in FAULTS.values()}
    files = {f"zenflux.{path.stem}" for path in Path(catalogue.__file__).parent.glob("bad_*.py")}
    assert modules == files == SOCKET | STORIES | REST


def test_faults_have_names_and_sentences_of_their_own() -> None:
    assert len({fault.server for fault in FAULTS.values()}) == len(FAULTS) > 150
    assert all(fault.sentence.endswith(".") for fault in FAULTS.values())


async def test_a_whole_examination_of_a_wrong_server_finishes(examine_zenflux: Examine, zenflux: Suite) -> None:
    server = combined([FAULTS[name].server for name in ("no-done", "without-user")])
    report = await examine_zenflux(server(), within=0.8, at_once=16)
    assert len(report.results) == len(zenflux.cases)
    assert [result.reason for result in report.results if "stumbled" in (result.reason or "")] == []
    assert report.verdict is Verdict.FAILS
