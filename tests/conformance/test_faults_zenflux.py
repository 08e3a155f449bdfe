"""Every fault of a ZenFlux server is caught by the cases it names; every case is proven by a fault.

Those whose recordings are judged too: `test_offline_judging`; by all cases: `make prove ARGS="--only faults"`.
"""

from pathlib import Path

import pytest

from conformance.faults.zenflux import catalogue
from conformance.faults.zenflux.catalogue import FAULTS
from conformance.kit.suite import Suite
from tests.support.conformance.wrong_servers import assert_caught, unrecorded

SOCKET = {"zenflux.bad_frames", "zenflux.bad_lines", "zenflux.bad_envelopes", "zenflux.bad_orders"}
STORIES = {"zenflux.bad_events", "zenflux.bad_messages", "zenflux.bad_blocks"}
REST = {"zenflux.bad_chats", "zenflux.bad_confirmations", "zenflux.bad_rooms", "zenflux.bad_answers"}


@pytest.mark.parametrize("name", unrecorded("zenflux"))
async def test_the_fault_is_caught(name: str) -> None:
    await assert_caught("zenflux", name)


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
