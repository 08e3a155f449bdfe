"""Mutants: each can be made in this tree, every room has some, and one that no test notices is told."""

import ast
from pathlib import Path

import pytest
import yaml

from tests.prove.mutants.__main__ import main
from tests.prove.mutants.rows import Mutant, by_turns, read_rows

ROOT = Path(__file__).resolve().parents[2]
ROWS = read_rows()
UNTESTED = {"gateway/ports", "conformance/faults"}
"""Folders without behaviour of their own: protocols, and servers that are wrong on purpose."""


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_mutant_can_be_made(row: Mutant) -> None:
    assert row.problem(ROOT) is None
    damaged = row.damaged((ROOT / row.file).read_text(encoding="utf-8"))
    if row.file.endswith(".py"):
        ast.parse(damaged)
    assert row.find != row.replace
    assert row.sentence.endswith(".")


def test_mutants_have_names_of_their_own() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) > 60


def test_every_folder_of_the_product_has_mutants() -> None:
    folders = [folder for top in ("gateway", "adapters", "conformance") for folder in (ROOT / top).iterdir()]
    rooms = {str(folder.relative_to(ROOT)) for folder in folders if (folder / "__init__.py").is_file()}
    damaged = {"/".join(row.file.split("/")[:2]) for row in ROWS}
    assert rooms - UNTESTED <= damaged
    assert "mappings/language" in damaged


def test_a_short_run_sees_every_room() -> None:
    rooms = [row.room for row in by_turns(ROWS)]
    count = len(set(rooms))
    assert len(set(rooms[:count])) == count


# -- a small tree -----------------------------------------------------------------------------------------------------

@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with two functions, one of which is tested; its tests need no plugins, which take long to import."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p pytest_timeout")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "sums.py").write_text("def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return a + a\n")
    (tree / "test_sums.py").write_text("import sums\n\n\ndef test_add():\n    assert sums.add(2, 3) == 5\n")
    return tree


def row(name: str, find: str, replace: str) -> dict[str, object]:
    return {"id": name, "room": "sums", "file": "sums.py", "find": find, "replace": replace,
            "sentence": f"It is {name}.", "tests": ["test_sums.py"]}


def run(tree: Path, *rows: dict[str, object]) -> int:
    file = tree.with_name("rows.yaml")
    file.write_text(yaml.safe_dump(list(rows)))
    return main(["--tree", str(tree), "--rows", str(file), "--jobs", "1"])


def test_what_no_test_notices_has_survived(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (small / "sums.py").read_text()
    assert run(
        small, row("noticed", "a + b", "a - b"), row("unnoticed", "a + a", "a - a"),
        row("unreadable", "def add", "def def"),
    ) == 1
    told = capsys.readouterr().out
    assert "test_sums.py::test_add" in next(line for line in told.splitlines() if line.startswith("noticed "))
    assert "1 killed, 1 SURVIVED, 1 BROKEN, 0 not reached" in told
    assert "It is unnoticed." in told
    assert (small / "sums.py").read_text() == before


def test_all_that_is_noticed_is_a_success(small: Path) -> None:
    assert run(small, row("noticed", "a + b", "a - b")) == 0


def test_a_text_that_is_there_twice_is_refused(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(small, row("ambiguous", "return a", "return b")) == 1
    assert capsys.readouterr().out == "ambiguous: `find` occurs 2 times in sums.py, not once\n"


def test_tests_that_fail_by_themselves_prove_nothing(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (small / "test_sums.py").write_text("def test_nothing():\n    assert False\n")
    assert run(small, row("any", "a + b", "a - b")) == 1
    told = capsys.readouterr().out
    assert "red" in told
    assert "killed" not in told
