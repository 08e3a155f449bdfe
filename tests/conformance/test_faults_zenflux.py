"""A third of the faults of a ZenFlux server are caught by the cases they name; every case has a fault that proves it.

Those whose recordings are judged too: `test_offline_judge`; all, by all cases: `make prove ARGS="--only faults"`.
"""

import pytest

from conformance.kit.suite import Suite
from tests.support.conformance.wrong_servers import FAULTS, assert_caught, sampled, unrecorded


@pytest.mark.parametrize("name", sampled(unrecorded("zenflux")))
async def test_the_fault_is_caught(name: str) -> None:
    await assert_caught("zenflux", name)


def test_every_case_is_proven_by_a_fault(zenflux: Suite) -> None:
    proven = {name for fault in FAULTS["zenflux"].values() for name in fault.cases}
    assert proven == {case.name for case in zenflux.cases}


def test_every_requirement_is_proven_by_a_fault(zenflux: Suite) -> None:
    applicable = {item.id for item in zenflux.catalogue.requirements if not item.not_applicable}
    assert {name for fault in FAULTS["zenflux"].values() for name in fault.requirements} == applicable


def test_faults_have_names_and_sentences_of_their_own() -> None:
    assert len({fault.server for fault in FAULTS["zenflux"].values()}) == len(FAULTS["zenflux"]) > 150
    assert all(fault.sentence.endswith(".") for fault in FAULTS["zenflux"].values())
