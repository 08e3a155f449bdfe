"""Frozen sets: the newest is what the catalogues say, and an older one can still be judged by."""

from pathlib import Path

import pytest

from conformance.kit import freeze
from conformance.kit.freeze import FrozenSet, chosen_set, frozen, read_set, versions, write_set
from conformance.kit.requirement import Catalogue, Level
from conformance.kit.suite import Suite, dialects, load_suite


@pytest.mark.parametrize("dialect", dialects())
def test_the_catalogue_is_the_newest_set(dialect: str) -> None:
    newest = versions()[-1]
    hint = f"the requirements of {dialect} are not those of {newest}: freeze them (python -m conformance.kit.freeze)"
    assert read_set(newest).dialects[dialect] == frozen(load_suite(dialect).catalogue), hint


def test_every_set_has_every_dialect_and_its_own_name() -> None:
    for version in versions():
        found = read_set(version)
        assert found.version == version
        assert set(found.dialects) == set(dialects())


def changed(catalogue: Catalogue, **change: object) -> Catalogue:
    first, *rest = catalogue.requirements
    return catalogue.model_copy(update={"requirements": (first.model_copy(update=change), *rest)})


def test_the_newest_set_is_used_as_long_as_it_fits(aap: Suite) -> None:
    assert chosen_set(None, aap.catalogue).version == versions()[-1]
    unreleased = chosen_set(None, changed(aap.catalogue, sentence="It must be otherwise."))
    assert unreleased.version == "unreleased"
    assert len(unreleased.requirements(aap.catalogue)) == len(aap.catalogue.requirements)


def test_a_set_that_no_longer_fits_is_refused(aap: Suite) -> None:
    version = versions()[-1]
    assert chosen_set(version, aap.catalogue).version == version
    with pytest.raises(ValueError, match="AAP-META-01 has another sentence"):
        chosen_set(version, changed(aap.catalogue, sentence="It must be otherwise."))
    with pytest.raises(ValueError, match="AAP-META-01 is no longer there"):
        chosen_set(version, changed(aap.catalogue, id="AAP-META-99"))
    with pytest.raises(ValueError, match=f"no set of requirements '1999-01'; there is: .*{version}"):
        chosen_set("1999-01", aap.catalogue)


def test_an_older_set_leaves_out_what_came_later_and_keeps_its_levels(aap: Suite) -> None:
    all_of_them = frozen(aap.catalogue)
    older = {name: item for name, item in all_of_them.items() if name != "AAP-META-01"}
    older["AAP-META-02"] = older["AAP-META-02"].model_copy(update={"level": Level.SHOULD})
    held = FrozenSet(version="2020-01", dialects={"aap": older}).requirements(aap.catalogue)
    assert len(held) == len(all_of_them) - 1
    assert held[0].id == "AAP-META-02"
    assert held[0].level is Level.SHOULD


def test_an_older_set_does_without_a_may_that_became_something_else(aap: Suite) -> None:
    def judged(level: Level) -> FrozenSet:
        was = frozen(changed(aap.catalogue, sentence="It may be so.", level=level))
        return FrozenSet(version="2020-01", dialects={"aap": was})

    raised = changed(aap.catalogue, formerly="It may be so.")
    older = judged(Level.MAY)
    assert older.changes(raised) == []
    assert [item.id for item in older.requirements(raised)] == [item.id for item in raised.requirements[1:]]
    assert older.changes(aap.catalogue) == ["AAP-META-01 has another sentence"]


def test_an_older_set_judges_by_the_sentence_that_was(aap: Suite) -> None:
    was = frozen(changed(aap.catalogue, sentence="It is so, and more.", level=Level.MUST))
    older = FrozenSet(version="2020-01", dialects={"aap": was})
    narrowed = changed(aap.catalogue, formerly="It is so, and more.")
    assert older.changes(narrowed) == []
    assert older.requirements(narrowed)[0].sentence == "It is so, and more."
    now = FrozenSet(version="2020-02", dialects={"aap": frozen(narrowed)})
    assert now.requirements(narrowed)[0].sentence == narrowed.requirements[0].sentence


@pytest.mark.parametrize("version", versions())
@pytest.mark.parametrize("dialect", dialects())
def test_every_set_can_be_asked_for(dialect: str, version: str) -> None:
    assert chosen_set(version, load_suite(dialect).catalogue).version == version


def test_a_set_that_is_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_set("2027-03", tmp_path)
    assert path.name == "2027-03.yaml"
    monkeypatch.setattr(freeze, "FOLDER", tmp_path)
    assert versions() == ("2027-03",)
    assert read_set("2027-03").dialects == read_set(path.stem).dialects
    assert sum(len(listed) for listed in read_set("2027-03").dialects.values()) > 400
