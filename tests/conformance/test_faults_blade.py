"""A third of the faults of a Blade server are caught by the cases they name; every case has a fault that proves it.

Those whose recordings are judged too: `test_offline_judge`; all, by all cases: `make prove ARGS="--only faults"`.
"""

import pytest

from conformance.kit.suite import Suite
from tests.support.conformance.wrong_servers import FAULTS, assert_caught, sampled, unrecorded


@pytest.mark.parametrize("name", sampled(unrecorded("blade")))
async def test_the_fault_is_caught(name: str) -> None:
    await assert_caught("blade", name)


def test_every_case_is_proven_by_a_fault(blade: Suite) -> None:
    proven = {name for fault in FAULTS["blade"].values() for name in fault.cases}
    assert proven == {case.name for case in blade.cases}


def test_every_requirement_that_applies_is_proven_by_a_fault(blade: Suite) -> None:
    applying = {item.id for item in blade.catalogue.requirements if not item.not_applicable}
    assert {name for fault in FAULTS["blade"].values() for name in fault.requirements} == applying


def test_faults_have_names_and_sentences_of_their_own() -> None:
    assert len({fault.server for fault in FAULTS["blade"].values()}) == len(FAULTS["blade"]) > 200
    assert all(fault.sentence.endswith(".") for fault in FAULTS["blade"].values())
