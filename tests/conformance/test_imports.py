"""The examiners know nothing of the house they examine."""

import ast
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOME)))
def test_nothing_of_the_house_is_imported(path: Path) -> None:
    assert imported(path.read_text(encoding="utf-8")) & FORBIDDEN == set()


@pytest.mark.parametrize("path", sorted((HOME / "kit").rglob("*.py")), ids=lambda path: path.name)
def test_the_kit_knows_no_dialect(path: Path) -> None:
    assert "conformance.aap" not in path.read_text(encoding="utf-8")
