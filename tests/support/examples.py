"""How many examples property tests try: the proof `properties` all of them, `make test` a part."""

from hypothesis import settings

SEARCH = "search"
"""The profile of the proof `properties`."""
EXAMPLES = 60
"""How many a property test tries in the proof if it does not say so itself."""
FEWEST, PART = 10, 0.4
"""`make test` tries this part of the examples, and no fewer than that: further ones mostly repeat the first."""


def fewer(most: int) -> int:
    return max(min(FEWEST, most), round(PART * most))


def examples(most: int) -> settings:
    """Try so many examples in the proof `properties`, and fewer in `make test`."""
    return settings(max_examples=most if settings.get_current_profile_name() == SEARCH else fewer(most))
