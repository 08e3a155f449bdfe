"""Catalogues: requirements as data, checked as they are read."""

from pathlib import Path

import pytest

from conformance.kit.documents import DocumentError
from conformance.kit.requirement import CHINESE, Level, Origin, Requirement, read_catalogue
from conformance.kit.suite import dialects, load_suite

ENTRY = "  - {id: %s, level: %s, section: one, source: here, sentence: Something must be so.}\n"
HEAD = "dialect: demo\ntitle: Demo\nrequirements:\n"


def written(folder: Path, *entries: tuple[str, str]) -> Path:
    path = folder / "requirements.yaml"
    path.write_text(HEAD + "".join(ENTRY % entry for entry in entries))
    return path


def test_a_catalogue_is_read_in_order(tmp_path: Path) -> None:
    catalogue = read_catalogue(written(tmp_path, ("D-B-01", "must"), ("D-A-01", "may")))
    assert [item.id for item in catalogue.requirements] == ["D-B-01", "D-A-01"]
    assert catalogue.ids == {"D-A-01", "D-B-01"}
    assert catalogue.sections == ("one",)


def test_an_id_is_listed_once(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="more than once: D-A-01"):
        read_catalogue(written(tmp_path, ("D-A-01", "must"), ("D-A-01", "may")))


def test_an_id_may_name_a_numbered_section(tmp_path: Path) -> None:
    assert read_catalogue(written(tmp_path, ("D-HTTP-3.13-01", "must"))).ids == {"D-HTTP-3.13-01"}


@pytest.mark.parametrize("entry", [("d-a-01", "must"), ("D-A-01", "ought"), ("D-A-1", "must")])
def test_ids_and_levels_have_their_form(tmp_path: Path, entry: tuple[str, str]) -> None:
    with pytest.raises(DocumentError, match=r"requirements\.0"):
        read_catalogue(written(tmp_path, entry))


def test_a_level_includes_those_that_bind_more() -> None:
    assert [level for level in Level if Level.SHOULD.includes(level)] == [Level.MUST, Level.SHOULD]
    assert [level for level in Level if Level.MUST.includes(level)] == [Level.MUST]
    assert all(Level.MAY.includes(level) for level in Level)


@pytest.mark.parametrize("dialect", dialects())
def test_every_chinese_quote_has_a_translation_and_nothing_else_has_one(dialect: str) -> None:
    requirements = load_suite(dialect).catalogue.requirements
    assert [item.id for item in requirements if item.is_quote_chinese and not item.english] == []
    assert [item.id for item in requirements if item.english and not item.is_quote_chinese] == []


@pytest.mark.parametrize("dialect", dialects())
def test_a_translation_is_english_and_keeps_the_lines_of_its_quote(dialect: str) -> None:
    translated = [item for item in load_suite(dialect).catalogue.requirements if item.english]
    assert translated
    for item in translated:
        assert CHINESE.search(item.english or "") is None, item.id
        assert len((item.english or "").split("\n")) == len(item.quote.split("\n")), item.id


@pytest.mark.parametrize("dialect", dialects())
def test_every_must_is_said_by_the_protocol(dialect: str) -> None:
    musts = [item for item in load_suite(dialect).catalogue.requirements if item.level is Level.MUST]
    assert musts and [item.id for item in musts if item.origin is Origin.OURS] == []


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ("protocol documentation, endpoints", Origin.DOCUMENTATION),
        ("product documentation", Origin.DOCUMENTATION),
        ("companion page on REST", Origin.DOCUMENTATION),
        ("published client", Origin.OURS),
        ("house decision", Origin.OURS),
    ],
)
def test_the_origin_is_told_by_the_quotation_or_the_source(source: str, origin: Origin) -> None:
    told = {"id": "D-A-01", "level": "must", "section": "one", "source": source, "sentence": "It must be so."}
    assert Requirement.model_validate(told).origin is origin
    assert Requirement.model_validate(told | {"seed": "It is so."}).origin is Origin.SEED
