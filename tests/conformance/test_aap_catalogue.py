"""The AAP catalogue and its cases, held against each other."""

import pytest

from conformance.kit.case import disagreements
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite

ROWS = {"META": 6, "SESS": 13, "HIST": 6, "TURN": 6, "SSE": 9, "NONE": 1, "TOOL": 7, "ERR": 1}
UNSAID = "META-06 SESS-06 SESS-11 SESS-12 SESS-13 HIST-05 HIST-06 TURN-04 TURN-05 TURN-06 TOOL-06 TOOL-07 ERR-01"


def test_catalogue_and_cases_agree_both_ways(aap: Suite) -> None:
    assert disagreements(aap.catalogue, aap.cases) == []


@pytest.mark.parametrize(("group", "count"), ROWS.items())
def test_every_row_of_the_specification_is_there(aap: Suite, group: str, count: int) -> None:
    found = [item.id for item in aap.catalogue.requirements if item.id.split("-")[1] == group]
    assert found == [f"AAP-{group}-{number:02}" for number in range(1, count + 1)]


def test_there_are_no_rows_besides(aap: Suite) -> None:
    assert len(aap.catalogue.requirements) == sum(ROWS.values())


def test_what_neither_schema_nor_documentation_says_is_no_must(aap: Suite) -> None:
    weaker = {item.id for item in aap.catalogue.requirements if item.level is Level.SHOULD}
    assert weaker == {f"AAP-{name}" for name in UNSAID.split()}
    musts = [item for item in aap.catalogue.requirements if item.level is Level.MUST]
    assert [item.id for item in musts if not item.seed and not item.source.startswith("protocol documentation, ")] == []


def test_what_was_split_off_was_part_of_a_must(aap: Suite) -> None:
    known = {item.id: item for item in aap.catalogue.requirements}
    former = {case.requirements: case.formerly for case in aap.cases if case.formerly}
    assert {ids[0] for ids in former} == {f"AAP-{name}" for name in UNSAID.split() if name[:4] != "ERR-"} - {
        "AAP-SESS-06",
        "AAP-TURN-04",
        "AAP-TOOL-06",
    }
    assert all(known[name].formerly for name in former.values() if name)


def test_files_are_named_after_sections(aap: Suite) -> None:
    files = {case.name.split(".")[0] for case in aap.cases}
    assert files - {"listing", "modes"} == set(aap.catalogue.sections)
