"""Any exception is caught at three borders only: of a turn, of HTTP, of a socket."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.source_trees import python_files, syntax_tree

ROOT = Path(__file__).parents[2]
ROOMS = ("gateway", "adapters", "mappings")
BORDERS = {
    "gateway/engine/turn.py": "_border",
    "gateway/http/error_middleware.py": "middleware",
    "gateway/http/websocket.py": "_serve",
}
"""The file and the function of each border."""


def catch_alls(tree: ast.AST, function: str = "") -> Iterator[str]:
    """The function of every handler that catches any exception and does not raise it again."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ExceptHandler) and _catches_all(node.type) and not _raises_again(node):
            yield function
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from catch_alls(node, node.name if is_function else function)


def _catches_all(kind: ast.expr | None) -> bool:
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(
        name is None or (isinstance(name, ast.Name) and name.id in ("Exception", "BaseException")) for name in names
    )


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """Whether the handler cleans up and lets the exception go on; for `except Exception` that is no excuse."""
    last = handler.body[-1]
    is_base = isinstance(handler.type, ast.Name) and handler.type.id == "BaseException"
    return is_base and isinstance(last, ast.Raise) and last.exc is None


def test_any_exception_is_caught_at_the_borders_only() -> None:
    found = {
        str(path.relative_to(ROOT)): functions
        for path in python_files(*ROOMS) if (functions := [*catch_alls(syntax_tree(path))])
    }
    assert found == {path: [function] for path, function in BORDERS.items()}


def test_a_handler_of_any_exception_is_found() -> None:
    source = """
def a():
    try: ...
    except Exception: raise
async def b():
    try: ...
    except (ValueError, BaseException): ...
def c():
    try: ...
    except: ...
def d():
    try: ...
    except BaseException:
        clean_up()
        raise
def e():
    try: ...
    except ValueError: ...
"""
    assert [*catch_alls(ast.parse(source))] == ["a", "b", "c"]
