"""Characters that a server has cut in two: it sent one half of a pair in one event, and the other in the next."""

import re

from gateway.json_values import Steps, run_steps

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")
"""An escape of JSON: a whole pair, half of one, or any other."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
REPLACEMENT = r"\ufffd"
ESCAPES_PER_STEP = 16_384
"""How many escapes are looked at in one step."""


def replace_lone_surrogates(json: str) -> str:
    """The same JSON with a sign for every half of a character; what has none stays as it is."""
    return run_steps(replace_lone_surrogates_in_steps(json))


def replace_lone_surrogates_in_steps(json: str) -> Steps[str]:
    """What `mended` does, in steps."""
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
