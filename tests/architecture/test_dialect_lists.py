"""Nothing but a dialect's own files names the dialects one by one: whoever needs them all looks which there are."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters import known_dialects
from tests.support.source_trees import python_files, syntax_tree

ROOT = Path(__file__).parents[2]
NAMES = known_dialects()
ANY = "|".join(NAMES)
ROOMS = ("adapters", "bench", "conformance", "gateway", "mappings", "tests")
HOMES = re.compile(rf"(^|/)({ANY})(/|\.py$)|^tests/conformance/test_\w*({ANY})\w*\.py$|^tests/support/fifth_dialect/")
"""The files of one dialect: below a folder of its name, or named after it."""
MANY = 3
"""So many names are a list; two are an example of a pair."""
ABOUT_CERTAIN_DIALECTS = {
    "tests/conformance/test_kit_suite.py": "mistakes in the profiles of certain dialects",
    "tests/migration/test_documented_bodies.py": "conversations as the documents of certain dialects show them",
    "tests/property/test_resuming.py": "each dialect's own way to resume, at every frame",
    "tests/security/test_client_addresses.py": "where each dialect takes addresses, request by request",
    "tests/security/test_hostile_json.py": "the worst input of certain models",
    "tests/test_graceful_shutdown.py": "what certain streams and sockets say when a server stops",
}
"""Tests that speak certain dialects at length, and why; a fifth dialect has such tests in its own folder."""
LISTED = re.compile(rf"\b(?:{ANY})\b(?:\W+(?:and |or )?\b(?:{ANY})\b){{{MANY - 1},}}")
OF_ONE_DIALECT = re.compile(
    rf"^(?:adapters|conformance|conformance\.faults|bench\.dialects|tests\.support\.dialects)\.({ANY})\b")


def sources() -> Iterator[Path]:
    """The files that could have a list; a file without so many of the names has none."""
    for path in python_files(*ROOMS):
        name = str(path.relative_to(ROOT))
        if HOMES.search(name) or name in ABOUT_CERTAIN_DIALECTS:
            continue
        if len(set(re.findall(ANY, path.read_text(encoding="utf-8")))) >= MANY:
            yield path


def lists_in(tree: ast.Module) -> Iterator[str]:
    """What names the dialects one by one: values beside each other, words of a text, imports of their homes."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict) and len(_beside(node)) >= MANY:
            yield f"line {node.lineno}: {', '.join(sorted(_beside(node)))}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield from (f"line {node.lineno}: {found[0]!r}" for found in LISTED.finditer(node.value))
    if len(imported := _imported(tree)) >= MANY:
        yield f"imports of {', '.join(sorted(imported))}"


def _beside(node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> set[str]:
    """The dialects that are elements of a collection, its keys, or the first values of its rows."""
    items = node.keys if isinstance(node, ast.Dict) else node.elts
    firsts = [item.elts[0] if isinstance(item, ast.List | ast.Tuple) and item.elts else item for item in items]
    return {item.value for item in firsts if isinstance(item, ast.Constant) and item.value in NAMES}


def _imported(tree: ast.Module) -> set[str]:
    """The dialects whose homes are imported."""
    found = set()
    for node in ast.walk(tree):
        names = [name.name for name in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        modules = [f"{node.module}.{name}" for name in names] if isinstance(node, ast.ImportFrom) else names
        found |= {match[1] for module in modules if (match := OF_ONE_DIALECT.match(module))}
    return found


def test_nothing_lists_the_dialects() -> None:
    found = {str(path.relative_to(ROOT)): lists for path in sources() if (lists := list(lists_in(syntax_tree(path))))}
    assert found == {}, "look which dialects there are: tests/support/dialect_parts.py, adapters.known_dialects()"


def test_the_exceptions_are_needed() -> None:
    for name in ABOUT_CERTAIN_DIALECTS:
        assert list(lists_in(syntax_tree(ROOT / name))), f"{name} lists nothing any more"


@pytest.mark.parametrize("code", [
    f"CLIENTS = {dict.fromkeys(NAMES)!r}", f"for name in {NAMES!r}: pass", f"ROWS = {[(name, 1) for name in NAMES]!r}",
    f"assert told == 'there are: {', '.join(NAMES)}'",
    "\n".join(f"from tests.support.dialects.{name} import client as {name}" for name in NAMES),
    "\n".join(f"from adapters import {name}" for name in NAMES),
], ids=["keys", "elements", "rows", "words", "imports", "modules"])
def test_a_list_is_seen(code: str) -> None:
    assert list(lists_in(ast.parse(code)))


def test_a_pair_and_a_docstring_are_no_lists() -> None:
    assert list(lists_in(ast.parse(f'"""Of {", ".join(NAMES)}."""\nPAIR = {NAMES[:2]!r}'))) == []
