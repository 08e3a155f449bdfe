"""Suites: found by the name of their dialect."""

from pathlib import Path

import pytest

from conformance.kit.documents import DocumentError
from conformance.kit.suite import Suite, choose, dialects, find_suite, load_suite


def test_aap_has_a_suite(aap: Suite) -> None:
    assert "aap" in dialects()
    assert aap.catalogue.dialect == "aap"


def test_a_dialect_without_a_suite_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        load_suite("esperanto")


def test_every_dialect_with_a_catalogue_can_be_loaded() -> None:
    assert [load_suite(name).catalogue.dialect for name in dialects()] == list(dialects())


def test_a_profile_of_ones_own_is_read(aap: Suite, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("prompts:\n  text: Hello\n  tetx: oops\n")
    with pytest.raises(DocumentError, match=r"prompts\.tetx"):
        aap.read_profile(path)


def test_requirements_are_chosen_by_id_pattern_and_level(aap: Suite) -> None:
    every = aap.catalogue.requirements
    assert [item.id for item in choose(every, ["AAP-META-02,AAP-META-01", "AAP-ERR-*"], "should")] == [
        "AAP-META-01", "AAP-META-02", "AAP-ERR-01",
    ]  # fmt: skip
    assert [item.id for item in choose(every, ["AAP-META-02", "AAP-ERR-01"], "must")] == ["AAP-META-02"]
    assert choose(every, [], "may") == every
    with pytest.raises(ValueError, match="no such requirement: AAP-X-01"):
        choose(every, ["AAP-META-01, AAP-X-01"], "may")


def test_a_suite_is_found_by_its_name() -> None:
    assert find_suite("aap").catalogue.dialect == "aap"
    with pytest.raises(ValueError, match="there is one for: aap, blade, cas, zenflux"):
        find_suite("esperanto")
