"""The words in which mistakes are told; each wrong table begins with what is to be said about it."""

from itertools import takewhile
from pathlib import Path

import pytest

from gateway.yaml_positions import Problems
from mappings.language import Vocabulary, load_table

DIAGNOSTICS = Path(__file__).parent / "diagnostics"
WHOLE = {"empty.yaml", "not_a_table.yaml", "not_yaml.yaml"}


@pytest.mark.parametrize("name", sorted(path.name for path in DIAGNOSTICS.glob("*.yaml")))
def test_a_wrong_table_is_told_all_that_is_wrong(
    name: str, plain_words: Vocabulary, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file that names the dialect `plain` is a whole table; the others are laid over one that is right."""
    monkeypatch.chdir(DIAGNOSTICS)
    text = Path(name).read_text("utf-8")
    expected = [line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("# "), text.splitlines())]
    whole = name in WHOLE or "dialect: plain" in text
    with pytest.raises(Problems) as told:
        if whole:
            load_table(name, plain_words)
        else:
            load_table("../tables/plain.yaml", plain_words, [name])
    assert str(told.value).splitlines() == expected


def test_a_file_that_is_not_there(plain_words: Vocabulary) -> None:
    with pytest.raises(Problems, match=r"nowhere\.yaml:1:1: there is no such file"):
        load_table("nowhere.yaml", plain_words)


def test_an_override_that_is_not_there(plain_words: Vocabulary) -> None:
    with pytest.raises(Problems) as told:
        load_table(DIAGNOSTICS.parent / "tables" / "plain.yaml", plain_words, ["nowhere.yaml"])
    assert str(told.value) == "nowhere.yaml:1:1: there is no such file"
