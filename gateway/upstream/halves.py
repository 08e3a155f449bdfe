"""Characters that a server has cut in two: it sent one half of a pair in one event, and the other in the next."""

import re

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")
"""An escape of JSON: a whole pair, half of one, or any other."""
INSTEAD = r"\ufffd"


def mended(json: str) -> str:
    """The same JSON with a sign for every half of a character; what has none stays as it is."""
    return _ESCAPE.sub(lambda found: INSTEAD if found[1] else found[0], json)
