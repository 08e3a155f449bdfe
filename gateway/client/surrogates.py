"""Replaces lone surrogates in JSON: halves of characters that a server has split over two events."""

import re

from gateway.json_values import Steps, run_steps

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")
"""A JSON escape: a surrogate pair, a lone surrogate, or any other escape."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
REPLACEMENT = r"\ufffd"
ESCAPES_PER_STEP = 16_384
"""The number of escapes that one step examines."""


def replace_lone_surrogates(json: str) -> str:
    """The JSON with U+FFFD instead of every lone surrogate."""
    return run_steps(replace_lone_surrogates_in_steps(json))


def replace_lone_surrogates_in_steps(json: str) -> Steps[str]:
    """`replace_lone_surrogates` in steps, so that the event loop can run in between."""
    if not _SURROGATE.search(json):
        return json
    pieces, start = list[str](), 0
    for number, found in enumerate(_ESCAPE.finditer(json), 1):
        if found[1]:
            pieces += json[start:found.start()], REPLACEMENT
            start = found.end()
        if number % ESCAPES_PER_STEP == 0:
            yield
    return "".join((*pieces, json[start:]))
