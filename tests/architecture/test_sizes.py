"""Functions are read at one glance and modules in one go; those that are longer have a reason, which stands here."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.source_trees import all_nodes, python_files

ROOT = Path(__file__).parents[2]
ROOMS = ("gateway", "adapters", "mappings")
MOST_LINES_OF_A_FUNCTION = 40
MOST_LINES_OF_A_MODULE = 350

LONG_FUNCTIONS = {
    "gateway/app.py:__init__": "constructs every part of a server, in the order in which the parts need each other",
    "gateway/backends/remote/backend.py:_events": "one loop of a turn; in two generators one would only pass events on",
    "gateway/cli/chat.py:chat": "the options of the command, and its help text",
    "gateway/cli/import_sessions.py:import_sessions": "the options of the command, and its help text",
    "gateway/engine/streams/cursor.py:chunks": "runs for every write to every client: a call less is time saved",
}
LONG_MODULES = {
    "adapters/cas/bodies.py": "a struct for each body of the protocol",
    "adapters/zenflux/bodies.py": "a struct for each body of the protocol",
    "gateway/app.py": "constructs every part of a server, and joins the parts",
    "gateway/cluster/session_service.py": "the methods of a session service, each with its way to the writer",
    "gateway/http/socketio/server.py": "one connection from handshake to end, with the checks that the library lacks",
    "gateway/model/events.py": "a struct for each event",
    "gateway/storage/log/redis/writer.py": "one loop that writes, and all ways in which a write ends",
    "mappings/language/check.py": "a check for each section of a table",
}


def long_functions() -> Iterator[str]:
    for path, node in all_nodes(*ROOMS):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > MOST_LINES_OF_A_FUNCTION:
            yield f"{path.relative_to(ROOT)}:{node.name}"


def _lines(node: ast.stmt) -> int:
    assert node.end_lineno is not None, "a parsed tree has the lines of its nodes"
    return node.end_lineno - node.lineno + 1


def long_modules() -> Iterator[str]:
    for path in python_files(*ROOMS):
        if len(path.read_text().splitlines()) > MOST_LINES_OF_A_MODULE:
            yield str(path.relative_to(ROOT))


def test_a_long_function_has_a_reason() -> None:
    found = set(long_functions())
    assert found - set(LONG_FUNCTIONS) == set(), "divide the function, or add it to LONG_FUNCTIONS with the reason"
    assert set(LONG_FUNCTIONS) - found == set(), "these are short now"


def test_a_long_module_has_a_reason() -> None:
    found = set(long_modules())
    assert found - set(LONG_MODULES) == set(), "divide the module, or add it to LONG_MODULES with the reason"
    assert set(LONG_MODULES) - found == set(), "these are short now"
