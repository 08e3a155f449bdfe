"""Owners of failures and departures are requirements: each id that the source names is in its dialect's catalogue."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.kit.suite import dialects, home_of, load_suite

POSITIONS = {"owned": 0, "note": 0, "noting": 0, "fail": 2, "that": 3, "fit": 3, "Failed": 2}
"""The calls that name an owner, and which of their arguments it is."""


def owners(source: str) -> Iterator[tuple[str, int]]:
    """The ids that a module names as owners, and the lines of the calls."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        place = POSITIONS.get(name) if name != "note" or len(node.args) + len(node.keywords) == 3 else None
        given = [word.value for word in node.keywords if word.arg == "owner"]
        given += node.args[place : place + 1] if place is not None else []
        for item in given:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                yield item.value, node.lineno


def unknown(path: Path, ids: frozenset[str]) -> list[str]:
    return [f"{path.name}:{line}: {name}" for name, line in owners(path.read_text("utf-8")) if name not in ids]


@pytest.mark.parametrize("dialect", dialects())
def test_owners_are_requirements_of_the_dialect(dialect: str) -> None:
    ids = load_suite(dialect).catalogue.ids
    assert [it for path in sorted(home_of(dialect).rglob("*.py")) for it in unknown(path, ids)] == []


def test_owners_are_found_wherever_they_are_named(tmp_path: Path) -> None:
    source = tmp_path / "some.py"
    source.write_text(
        "with expect.owned('A-1'), departures.noting('A-2'):\n"
        "    departures.note('A-3', 'a', 'b')\n"
        "    expect.fail('a', 'b', 'A-4')\n"
        "    expect.that(False, 'a', 'b', owner='A-5')\n"
        "    self.schemas.fit('name', body, 'a body', owner='A-6')\n"
        "    raise Failed('a', 'b', 'A-7')\n"
        "    expect.fail('a', 'b')\n"
    )
    assert unknown(source, frozenset({"A-5"})) == [
        "some.py:1: A-1", "some.py:1: A-2", "some.py:2: A-3", "some.py:3: A-4", "some.py:5: A-6", "some.py:6: A-7",
    ]  # fmt: skip
