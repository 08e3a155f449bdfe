"""Keeps `ast.parse` of Python 3.11 whole: a garbage collection in its middle breaks it if a finalizer parses something.

In that version the depth of the syntax tree is counted in one place for all parsers. Hypothesis parses the files of
tests to describe lambdas, and a finalizer that reports a forgotten task formats a traceback, which parses a line. If
both meet, `ast.parse` raises SystemError ("AST constructor recursion depth mismatch").
"""

import ast
import gc
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

IS_NEEDED = sys.version_info < (3, 12)


def without_collection(parse: Callable[..., Any]) -> Callable[..., Any]:
    """The function, during which no garbage is collected."""

    @wraps(parse)
    def parse_whole(*given: Any, **named: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return parse(*given, **named)
        finally:
            if was_enabled:
                gc.enable()

    return parse_whole


def keep_whole() -> None:
    """Let the parser of this process collect no garbage, if its version of Python needs that."""
    if IS_NEEDED:
        ast.parse = without_collection(ast.parse)
