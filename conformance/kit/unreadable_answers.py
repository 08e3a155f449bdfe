"""Unreadable answers: a case stops where a value in an answer does not have the shape that the case reads.

Cases hold answers to schemas before they read them; what no schema promised may still be missing, or be something else.
Such a case cannot be decided, and says at which words of its own it gave up and what had come. It is no failure: the
shape may be one the protocol allows and nobody thought of.
"""

import linecache
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.kit import expect
from conformance.kit.expect import NotTestable
from conformance.kit.transcript import Transcript

HOME = Path(__file__).parent.parent
READING = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
JSON = (str, int, float, bool, type(None), list, dict)
OF_OUR_OWN = re.compile("positional argument|keyword argument|not callable")


class Unreadable(NotTestable):
    """A value in the server's answer does not have the shape that the case reads."""


@contextmanager
def reading(transcript: Transcript) -> Iterator[None]:
    """Turn errors about the shape of an answer into `Unreadable`; mistakes of the suite itself stay as they are."""
    try:
        yield
    except (*READING, RuntimeError) as error:
        if not transcript.has_answer or _is_our_own(error):
            raise
        said = f"{type(error).__name__}: {error}"
        came = expect.show(transcript.last_answer)
        raise Unreadable(f"an answer could not be read: {said}, at {_place(error)}; what came last: {came}") from error


def _is_our_own(error: Exception) -> bool:
    """Whether no answer could have brought it about: a wrong call, or a member that an object of ours does not have."""
    if isinstance(error, RuntimeError) and not isinstance(error, RecursionError):
        return not isinstance(error.__cause__, StopIteration)  # a search that found nothing, in a coroutine
    if isinstance(error, AttributeError):
        return type(error.obj) not in JSON
    return isinstance(error, TypeError) and OF_OUR_OWN.search(str(error)) is not None


def _place(error: Exception) -> str:
    """The line of the case that could not read the answer, and its place."""
    frames = [it for it in traceback.extract_tb(error.__traceback__) if HOME in Path(it.filename).parents]
    if not frames:
        return "a place unknown"
    last = frames[-1]
    line = linecache.getline(last.filename, last.lineno or 0).encode()
    is_short = last.end_lineno == last.lineno
    words = line[last.colno : last.end_colno if is_short else None].decode("utf-8", "replace").strip()
    return f"`{words}` ({Path(last.filename).relative_to(HOME.parent)}:{last.lineno})"
