"""The order of the tests: each worker is first given an equal part, and begins with its share of the longest."""

import pytest

LONGEST = {
    "test_liberties": 1,
    "test_reference": 4,
    "test_conforming": 4,
    "test_makefile": 3,
}
"""Files whose tests take longest, and how many seconds each of them takes, roughly: all wait for what begins last."""


def dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The items in an order that makes as many parts as there are workers; the same for all of them."""
    hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for item in sorted(items, key=_seconds, reverse=True):
        if _seconds(item):
            min(hands, key=lambda hand: sum(map(_seconds, hand))).append(item)
    short = [item for item in items if not _seconds(item)]
    order: list[pytest.Item] = []
    for place, hand in enumerate(hands):
        room = max(0, (len(items) - len(order)) // (workers - place) - len(hand))
        order += [*hand, *short[:room]]
        del short[:room]
    return order + short


def _seconds(item: pytest.Item) -> int:
    return LONGEST.get(item.path.stem, 0)
