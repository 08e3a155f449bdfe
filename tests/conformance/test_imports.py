"""The examiners know nothing of the house they examine."""

import ast
from pathlib import Path

import conformance

HOME = Path(conformance.__file__).parent
FORBIDDEN = {"gateway", "adapters", "mappings"}
FILES = sorted(HOME.rglob("*.py"))


def imported(source: str) -> set[str]:
    """The top-level names a module imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." if node.level else (node.module or "").split(".")[0])
    return found


def test_imports_are_seen_wherever_they_are() -> None:
    source = "import gateway.model\ndef late():\n    from adapters.aap import wire\nfrom . import x\n"
    assert imported(source) == {"gateway", "adapters", "."}


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 40


def test_nothing_of_the_house_is_imported() -> None:
    found = {path.name: imported(path.read_text(encoding="utf-8")) & FORBIDDEN for path in FILES}
    assert {name: names for name, names in found.items() if names} == {}


def test_the_kit_knows_no_dialect() -> None:
    kit = sorted((HOME / "kit").rglob("*.py"))
    assert [path.name for path in kit if "conformance.aap" in path.read_text(encoding="utf-8")] == []
