"""How much property tests try: the proof `properties` all of it, `make test` a part."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

SEARCH = "search"
"""The profile of the proof `properties`."""
EXAMPLES = 60
"""How many a property test tries in the proof if it does not say so itself."""
FEWEST, PART = 10, 0.4
"""`make test` tries this part of the examples, and no fewer than that: further ones mostly repeat the first."""
whole_in_the_proof = pytest.mark.hypothesis
"""For a test that is no property test, but tries more in the proof `properties` than in `make test`."""


def is_search() -> bool:
    """Whether this is the proof `properties`."""
    return settings.get_current_profile_name() == SEARCH


def forget_constants() -> None:
    """Let `make test` try no constants that hypothesis finds in the modules that happen to be imported.

    With those, the examples of a test would depend on the tests of the same process, and every process would read all
    sources. A version of hypothesis that has another name for them tries them everywhere.
    """
    find = getattr(providers, "_get_local_constants", None)
    if find is not None:
        nothing = type(find.__globals__["_local_constants"])()
        vars(providers)["_get_local_constants"] = lambda: find() if is_search() else nothing


def local_constants() -> Any:
    """What hypothesis finds in the modules that are imported."""
    return vars(providers)["_get_local_constants"]()


def fewer(most: int) -> int:
    return max(min(FEWEST, most), round(PART * most))


def examples(most: int) -> settings:
    """Try so many examples in the proof, and fewer in `make test`."""
    return settings(max_examples=most if is_search() else fewer(most))


def cuts(stream: bytes, step: int) -> list[int]:
    """Where to cut a stream: at every byte in the proof; otherwise around the ends of lines, and at every `step`-th."""
    return [place for place in range(len(stream))
            if is_search() or place % step == 0 or b"\n" in stream[max(0, place - 2):place + 2]]
