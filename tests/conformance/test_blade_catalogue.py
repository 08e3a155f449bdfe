"""The Blade catalogue and its cases, held against each other."""

from collections import Counter

import pytest

from conformance.kit.case import disagreements
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite

ROWS = {
    "GEN": 3, "SESS": 16, "TURN": 18, "BLK": 15, "TC": 8, "MREF": 1, "PATCH": 9, "MEM": 5, "KEY": 3, "TASK": 2,
    "META": 6, "FLOW": 33, "WS": 10, "REST": 21, "BR": 2,
}  # fmt: skip
CONTINUED = {"order", "stop", "rest_session", "rest_more"}


def test_catalogue_and_cases_agree_both_ways(blade: Suite) -> None:
    assert disagreements(blade.catalogue, blade.cases) == []


@pytest.mark.parametrize(("group", "count"), ROWS.items())
def test_every_row_of_the_specification_is_there(blade: Suite, group: str, count: int) -> None:
    found = sorted(item.id for item in blade.catalogue.requirements if item.id.split("-")[1] == group)
    assert found == [f"BL-{group}-{number:02}" for number in range(1, count + 1)]


def test_the_rows_besides_settle_gaps(blade: Suite) -> None:
    rest = [item for item in blade.catalogue.requirements if item.id.split("-")[1] not in ROWS]
    assert {item.section for item in rest} == {"gap"}
    assert all(item.level is not Level.MUST for item in rest)


def test_pages_bind_as_must_companions_as_should_and_gaps_as_may(blade: Suite) -> None:
    for item in blade.catalogue.requirements:
        if item.level is Level.MUST:
            assert not item.source.startswith(("companion", "the specification is silent"))
        if item.source.startswith("companion"):
            assert item.level is Level.SHOULD
    levels = Counter(item.level for item in blade.catalogue.requirements)
    assert levels == {Level.MUST: 116, Level.SHOULD: 38, Level.MAY: 11}


def test_what_is_not_for_servers_says_why(blade: Suite) -> None:
    exempt = {item.id for item in blade.catalogue.requirements if item.not_applicable}
    assert exempt == {"BL-META-03", "BL-FLOW-23", "BL-FLOW-29", "BL-FLOW-32", "BL-FLOW-33", "BL-BR-01"}


def test_files_are_named_after_sections(blade: Suite) -> None:
    files = {case.name.split(".")[0] for case in blade.cases}
    assert files - CONTINUED == set(blade.catalogue.sections)
