"""Loading: whatever is written, the answer is a table or a list of problems."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.yaml_positions import Problems, read_yaml
from mappings.language import Table, Vocabulary, builtin_path, builtin_table, load_table
from mappings.language.shape import SECTIONS
from tests.support.dialect_tables import DIALECTS, dialect

DOCS = Path(__file__).parents[2] / "docs" / "mappings.md"
WORDS = st.sampled_from([
    None, True, 3, "", "x", "*", "$", "$seq", "$wire", "$body", "$at | iso", "$call.name | optional", "$drop",
])
ANYTHING = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
        st.sampled_from(["a", "<<", "envelope", "command", "given", "body", "status", "turn.ended", "default@sse"]),
        inner, max_size=3,
    ), max_leaves=6,
)


def test_the_built_in_tables_are_beside_the_language() -> None:
    assert builtin_path("aap").name == "aap.yaml"
    assert builtin_path("aap").is_file()


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_says_itself_what_its_table_may_use(name: str) -> None:
    its = dialect(name)
    words = Vocabulary.of(its)
    assert (words.cues, words.names, words.messages, words.objects) == (its.cues, its.names, its.messages, its.objects)
    assert builtin_table(its).dialect == name


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(section=st.sampled_from(SECTIONS), entry=st.integers(0, 40) | st.none(), value=ANYTHING)
def test_nothing_that_is_written_breaks_the_loader(
    plain_path: Path, plain_words: Vocabulary, tmp_path: Path, section: str, entry: int | None, value: Any,
) -> None:
    table = dict(read_yaml(plain_path).value)
    if entry is None or not isinstance(table.get(section), dict):
        table[section] = value
    else:
        keys = list(table[section])
        table[section] = {**table[section], keys[entry % len(keys)]: value}
    file = tmp_path / "any.yaml"
    file.write_bytes(orjson.dumps(table))  # JSON is YAML
    try:
        made = load_table(file, plain_words)
    except Problems as problems:
        assert problems.problems
    else:
        assert isinstance(made, Table)
        assert made.encoder("json")


def test_the_override_of_the_documentation_is_right(tmp_path: Path, aap_words: Vocabulary) -> None:
    example = re.search(r"```yaml\n(# my-aap\.yaml\n.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert example
    file = tmp_path / "my-aap.yaml"
    file.write_text(example[1])
    table = load_table(builtin_path("aap"), aap_words, [file])
    assert table.word("stop_reason", "interrupted") == "end_turn"


def test_every_section_and_filter_is_documented() -> None:
    text = DOCS.read_text("utf-8")
    for word in (*SECTIONS, "iso", "ms", "json", "text", "content", "parts", "optional"):
        assert f"`{word}`" in text


@pytest.mark.parametrize("dialect", [path.stem for path in builtin_path("aap").parent.glob("*.yaml")])
def test_a_table_is_named_after_its_dialect(dialect: str) -> None:
    assert read_yaml(builtin_path(dialect)).value["dialect"] == dialect
