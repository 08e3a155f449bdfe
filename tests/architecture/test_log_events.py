"""What the server logs: every event has a name, and the page on upgrading gives names that are written."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache

from tests.support.source_trees import ROOT, all_nodes

LEVELS = ("debug", "info", "warning", "error", "exception", "critical")


def event_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The texts of the first argument of every call of a logger."""
    for call in nodes:
        if isinstance(call, ast.Call) and call.args and any(map(is_logger, ast.walk(call.func))):
            yield from (node.value for node in ast.walk(call.args[0])
                        if isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_logger(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr not in LEVELS:
        return False
    name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    return name == "log" or name.endswith("sampled")


@cache
def all_event_names() -> set[str]:
    return set(event_names(node for _, node in all_nodes("gateway", "adapters", "mappings")))


def test_every_event_has_a_name_instead_of_a_sentence() -> None:
    names = all_event_names()
    assert len(names) > 70
    assert sorted(name for name in names if not re.fullmatch(r"[a-z][a-z0-9_]+", name)) == []


def test_the_page_on_upgrading_gives_names_that_are_written() -> None:
    page = (ROOT / "docs" / "upgrading.md").read_text().partition("## Log events")[2].partition("\n## ")[0]
    shown = set(re.findall(r"\| `(\w+)` \|$", page, re.MULTILINE))
    assert len(shown) > 60
    assert shown - all_event_names() == {"shadow_differs", "shadow_failed"}, "the verdict is a part of these names"
