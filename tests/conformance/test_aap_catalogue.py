"""The AAP catalogue and its cases, held against each other."""

from collections import Counter

import pytest

from conformance.kit.case import disagreements
from conformance.kit.requirement import Level
from conformance.kit.suite import Suite

ROWS = {"META": 5, "SESS": 10, "HIST": 4, "TURN": 4, "SSE": 9, "NONE": 1, "TOOL": 6, "ERR": 1}


def test_catalogue_and_cases_agree_both_ways(aap: Suite) -> None:
    assert disagreements(aap.catalogue, aap.cases) == []


@pytest.mark.parametrize(("group", "count"), ROWS.items())
def test_every_row_of_the_specification_is_there(aap: Suite, group: str, count: int) -> None:
    found = [item.id for item in aap.catalogue.requirements if item.id.split("-")[1] == group]
    assert found == [f"AAP-{group}-{number:02}" for number in range(1, count + 1)]


def test_there_are_no_rows_besides(aap: Suite) -> None:
    assert len(aap.catalogue.requirements) == sum(ROWS.values())


def test_all_but_two_are_musts(aap: Suite) -> None:
    assert Counter(item.level for item in aap.catalogue.requirements) == {Level.MUST: 38, Level.SHOULD: 2}
    weaker = {item.id for item in aap.catalogue.requirements if item.level is Level.SHOULD}
    assert weaker == {"AAP-ERR-01", "AAP-TOOL-06"}


def test_files_are_named_after_sections(aap: Suite) -> None:
    files = {case.name.split(".")[0] for case in aap.cases}
    assert files - {"listing", "modes"} == set(aap.catalogue.sections)
