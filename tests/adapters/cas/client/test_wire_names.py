"""The client role has no word of the wire: what the table spells, the table reads and writes."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import adapters.cas.client
from adapters.cas.bodies import OBJECTS
from mappings.language import builtin_path
from mappings.language.expressions import parse_expression, slots

TABLE = yaml.safe_load(builtin_path("cas").read_text("utf-8"))
MODULES = sorted(Path(adapters.cas.client.__file__).parent.glob("*.py"))
NOTES = ("of", "known_by", "write-only", "read-only", "envelope")


def words_of(value: Any) -> Iterator[str]:
    """The names and the constants of some rows."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in NOTES:
                yield from (key, *words_of(item))
    elif isinstance(value, list):
        for item in value:
            yield from words_of(item)
    elif isinstance(value, str) and not value.startswith("$"):
        yield value


def bindings_of(value: Any) -> set[str]:
    found = [slot for slot, _ in slots(parse_expression(value, (), lambda path, message: None))]
    return {name for slot in found for name in (slot.name, *slot.steps)}


def owned_by_the_table() -> set[str]:
    """Its words, without those that are names of rows, cues or bindings as well."""
    rows = [TABLE["frames"][cue] for cue in TABLE["frames"]]
    spelled = [*rows, *(list(TABLE[section].values()) for section in ("envelopes", "parts", "objects"))]
    spelled += [row.get("wire") for row in TABLE["inputs"].values()]
    own = {*TABLE["frames"], *TABLE["objects"], *TABLE["inputs"], *bindings_of(spelled)}
    own |= {"", *(name for kind in OBJECTS.values() for name in kind.__struct_fields__)}
    return {*words_of(spelled), *(str(word) for words in TABLE["enums"].values() for word in words.values())} - own


def texts_of(module: Path) -> set[str]:
    tree = ast.parse(module.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_the_client_has_no_word_of_the_wire(module: Path) -> None:
    owned = owned_by_the_table()
    assert {"agent.message", "session_thread_id", "custom_tool_use_id", "requires_action", "permission_policy"} <= owned
    assert texts_of(module) & owned == set()
