"""Cases: bound to requirements, collected from modules, held against the catalogue."""

from types import ModuleType
from typing import Any

import pytest

from conformance.kit.case import Case, collect, disagreements, requirement
from conformance.kit.requirement import Catalogue, Requirement


def catalogue(*ids: str) -> Catalogue:
    items = [
        Requirement(id=name, level="must", section="one", source="here", sentence="It must be so.")  # type: ignore[arg-type]
        for name in ids
    ]
    return Catalogue(dialect="demo", title="Demo", requirements=tuple(items))


def case(name: str, *ids: str, sentence: str = "A sentence.") -> Case:
    async def check(exam: Any) -> None:
        return None

    return Case(name, ids, sentence, check)


def test_a_case_knows_its_name_its_sentence_and_its_requirements() -> None:
    @requirement("D-A-01", "D-A-02")
    async def something_is_so(exam: Any) -> None:
        """Something
        is so."""

    assert something_is_so.name.endswith(".something_is_so")
    assert something_is_so.sentence == "Something is so."
    assert something_is_so.requirements == ("D-A-01", "D-A-02")


def test_a_case_without_a_requirement_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="at least one"):
        requirement()


def test_cases_are_collected_in_order() -> None:
    module = ModuleType("some")
    module.second, module.other, module.first = case("b", "D-A-01"), "not a case", case("a", "D-A-01")  # type: ignore[attr-defined]
    assert [found.name for found in collect([module])] == ["b", "a"]


def test_a_tuple_of_cases_made_from_a_table_is_collected_too() -> None:
    module = ModuleType("some")
    module.table = (case("b", "D-A-01"), case("a", "D-A-01"))  # type: ignore[attr-defined]
    assert [found.name for found in collect([module])] == ["b", "a"]


def test_what_does_not_apply_has_no_case() -> None:
    about = {"section": "one", "source": "here", "sentence": "It must be so.", "not_applicable": "It is for clients."}
    exempt = Requirement(id="D-A-02", level="must", **about)  # type: ignore[arg-type]
    whole = Catalogue(dialect="demo", title="Demo", requirements=(*catalogue("D-A-01").requirements, exempt))
    assert disagreements(whole, [case("a", "D-A-01")]) == []
    found = disagreements(whole, [case("a", "D-A-01", "D-A-02")])
    assert found == ["D-A-02: a case names it, though it does not apply"]


def test_agreement_is_silent() -> None:
    assert disagreements(catalogue("D-A-01"), [case("a", "D-A-01")]) == []


def test_disagreements_are_found_both_ways() -> None:
    cases = [case("a", "D-A-01", "D-X-01"), case("a", "D-A-01"), case("c", "D-A-01", sentence="")]
    assert disagreements(catalogue("D-A-01", "D-A-02"), cases) == [
        "D-A-02: no case decides it",
        "D-X-01: a case names it, the catalogue does not",
        "a: two cases have this name",
        "c: has no sentence",
    ]
