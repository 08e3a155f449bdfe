"""A third of the faults of a CAS server are caught by the cases they name; every case has a fault that proves it.

Those whose recordings are judged too: `test_offline_judge`; all, by all cases: `make prove ARGS="--only faults"`.
"""

import pytest

from conformance.faults.fault import load_faults
from conformance.kit.suite import Suite
from tests.support.conformance.wrong_servers import assert_caught, sampled, unrecorded

FAULTS = load_faults("cas")


@pytest.mark.parametrize("name", sampled(unrecorded("cas")))
async def test_the_fault_is_caught(name: str) -> None:
    await assert_caught("cas", name)


def test_every_case_is_proven_by_a_fault(cas: Suite) -> None:
    proven = {name for fault in FAULTS.values() for name in fault.cases}
    assert proven == {case.name for case in cas.cases}


def test_every_requirement_is_proven_by_a_fault(cas: Suite) -> None:
    assert {name for fault in FAULTS.values() for name in fault.requirements} == cas.catalogue.ids


def test_faults_have_names_and_sentences_of_their_own() -> None:
    assert len({fault.server for fault in FAULTS.values()}) == len(FAULTS) > 150
    assert len({fault.sentence for fault in FAULTS.values()}) == len(FAULTS)
    assert all(fault.sentence.endswith(".") for fault in FAULTS.values())
