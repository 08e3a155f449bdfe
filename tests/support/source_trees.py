"""The Python files of the project and their syntax trees, each parsed once for all tests of a process."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def python_files(*rooms: str) -> tuple[Path, ...]:
    """The modules below these folders, in the order of their names."""
    return tuple(sorted(path for room in rooms for path in (ROOT / room).rglob("*.py")))


@cache
def syntax_tree(path: Path) -> ast.Module:
    """The tree of a file that no test changes."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, as `ast.walk` gives them."""
    return tuple(ast.walk(syntax_tree(path)))


def all_nodes(*rooms: str) -> Iterator[tuple[Path, ast.AST]]:
    for path in python_files(*rooms):
        for node in nodes_of(path):
            yield path, node
