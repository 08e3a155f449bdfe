"""The examiners know nothing of the house they examine."""

import ast
from collections.abc import Iterable

from tests.support.source_trees import nodes_of, python_files

FORBIDDEN = {"gateway", "adapters", "mappings"}
FILES = python_files("conformance")


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """The top-level names a module imports, anywhere in it."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." if node.level else (node.module or "").split(".")[0])
    return found


def test_imports_are_seen_wherever_they_are() -> None:
    source = "import gateway.model\ndef late():\n    from adapters.aap import wire\nfrom . import x\n"
    assert imported(ast.walk(ast.parse(source))) == {"gateway", "adapters", "."}


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 40


def test_nothing_of_the_house_is_imported() -> None:
    found = {path.name: imported(nodes_of(path)) & FORBIDDEN for path in FILES}
    assert {name: names for name, names in found.items() if names} == {}


def test_the_kit_knows_no_dialect() -> None:
    kit = python_files("conformance/kit")
    assert [path.name for path in kit if "conformance.aap" in path.read_text(encoding="utf-8")] == []
