"""The readers of these tests know documents, not code; and read what the documents show."""

import ast
from pathlib import Path

import pytest

from tests.support.pairs.reader import TurnReader, at_once

SUPPORT = Path(__file__).parents[1] / "support"
READERS = [SUPPORT / "pairs" / "reader.py", *sorted(SUPPORT.glob("dialects/*/pair_reader.py"))]
PRODUCT = ("gateway", "adapters", "mappings", "conformance")


@pytest.mark.parametrize("path", READERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_reader_imports_nothing_that_it_is_to_judge(path: Path) -> None:
    tree = ast.walk(ast.parse(path.read_text()))
    named = [name.name for node in tree if isinstance(node, ast.Import) for name in node.names]
    named += [node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    assert [name for name in named if name.split(".")[0] in PRODUCT] == []
    ours = [name for name in named if name.startswith("tests.")]
    assert [name for name in ours if not name.startswith("tests.support.pairs.reader")] == []


def test_calls_are_parallel_while_they_are_open_together() -> None:
    trace = [("a", True), ("b", True), ("a", False), ("c", True), ("b", False), ("c", False)]
    assert at_once(trace) == 2
    assert at_once(trace, without={"b"}) == 0
    assert at_once([("a", True), ("a", False), ("b", True)]) == 0


def test_what_a_client_does_itself_is_no_result_of_the_server() -> None:
    reading = TurnReader(("paint",))
    reading.call("c1", "paint", {})
    reading.returned("c1", "painted")
    assert reading.facts()["tool_results"] == []
