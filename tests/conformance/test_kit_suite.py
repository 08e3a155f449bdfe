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
    with pytest.raises(ValueError, match=f"there is one for: {', '.join(dialects())}"):
        find_suite("esperanto")


@pytest.mark.parametrize("dialect", ["cas", "zenflux"])
@pytest.mark.parametrize("text", ["heartbeat: null", "{}"])
def test_no_heartbeat_means_the_same_in_every_dialect(tmp_path: Path, dialect: str, text: str) -> None:
    (tmp_path / "profile.yaml").write_text(text)
    profile = load_suite(dialect).read_profile(tmp_path / "profile.yaml")
    assert profile.model_dump()["heartbeat"] is None


@pytest.mark.parametrize(("dialect", "text", "told"), [
    ("aap", "promts: {}", "profile.yaml:1: promts: there is no such entry; do you mean 'prompts'?"),
    ("aap", "prompts:\n  thinkin: x",
     "profile.yaml:2: prompts.thinkin: there is no such entry; do you mean 'thinking'?"),
    ("aap", "first_tool: {nam: x, prompt: y, name: z}",
     "profile.yaml:1: first_tool.nam: there is no such entry; do you mean 'name'?"),
    ("aap", "listing: {zzz: 3}", "profile.yaml:1: listing.zzz: there is no such entry; there is: sessions"),
    ("cas", "stream_start: histroy", "profile.yaml:1: stream_start: there is no 'histroy'; do you mean 'history'?"),
    ("zenflux", "annotations: [recomended]",
     "profile.yaml:1: annotations.0: there is no 'recomended'; do you mean 'recommended'?"),
])
def test_a_slip_in_a_profile_is_told_with_the_nearest_name(tmp_path: Path, dialect: str, text: str, told: str) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError) as caught:
        load_suite(dialect).read_profile(path)
    assert str(caught.value) == f"{tmp_path}/{told}"
