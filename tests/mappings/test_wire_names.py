"""The client roles have no names of the wire that their tables own: what a table spells stands in the table."""

import ast
from collections.abc import Iterator
from enum import StrEnum
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import Struct

import adapters
import gateway.model as m
from adapters import known_dialects
from mappings.language import Table, builtin_table
from mappings.language.expressions import SPLICE, Array, Constant, Node, Object, slots

ADAPTERS = Path(adapters.__file__).parent
def canonical_names() -> set[str]:
    """The words of the model, which are everybody's: fields, values of enums, kinds, and names of events."""
    kinds = [one for one in vars(m).values() if isinstance(one, type)]
    names = {field for one in kinds if issubclass(one, Struct) for field in one.__struct_fields__}
    names |= {str(value) for one in kinds if issubclass(one, StrEnum) for value in one}
    names |= {str(one.__struct_config__.tag) for one in kinds if issubclass(one, Struct)}
    return names | {variant for event in m.EVENTS for variant in (event.name, *event.variants)}


def spelled_names(node: Node) -> Iterator[str]:
    """The keys and the constant texts of a template."""
    if isinstance(node, Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, Array):
        for item in node.items:
            yield from spelled_names(item)
    elif isinstance(node, Object):
        for key, child in node.items:
            if key != SPLICE:
                yield key
            yield from spelled_names(child)


def owned_names(table: Table) -> set[str]:
    """What the table alone spells: wire names, members and constants.

    Words of the model, names of rows and names of bindings are not among them: code has these of its own right.
    """
    draft = table._draft
    found = {name for node in draft.nodes() for name in spelled_names(node)}
    found |= {one.wire for frames in draft.frames.values() for frame in frames for one in (frame, *frame.also)}
    known = {*canonical_names(), *draft.frames, *draft.inputs, *draft.objects}
    known |= {name for node in draft.nodes() for slot, _ in slots(node) for name in (slot.name, *slot.steps)}
    return {name for name in found - known if name and name.isascii() and " " not in name}


def literals(source: str) -> Iterator[str]:
    """Every text in the code, without docstrings and without pieces of longer texts."""
    tree = ast.parse(source)
    passed_over = {id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in ast.walk(node)}
    passed_over |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over:
            yield node.value


@pytest.mark.parametrize("name", known_dialects())
def test_the_client_role_has_no_names_that_the_table_owns(name: str) -> None:
    owned = owned_names(builtin_table(import_module(f"adapters.{name}").DIALECT))
    for file in sorted((ADAPTERS / name / "client").glob("*.py")):
        found = [one for one in literals(file.read_text("utf-8")) if one in owned]
        assert found == [], f"{file.name} spells {sorted(set(found))}: its table has a row for them"


def test_what_a_table_owns() -> None:
    """The wire's names, but not the model's, and not the names of rows and bindings."""
    owned = owned_names(builtin_table(import_module("adapters.aap").DIALECT))
    assert {"toolCallId", "stopReason", "text_delta", "sessionId", "confirm_continue", "tool_permission"} <= owned
    assert not {"content", "name", "text", "message.user", "turn.ended", "user", "request_id", "session_id"} & owned


def test_literals_are_whole_texts() -> None:
    code = 'def f(a):\n    """toolCallId"""\n    return a["toolCallId"], f"toolCallId {a}", "x toolCallId"\n'
    assert sorted(literals(code)) == ["toolCallId", "x toolCallId"]
