"""The judge of orders: it finds histories that no order explains, and no fault with those that one does."""

from math import inf

import pytest

from tests.prove.simulation.linearizability import Operation, is_linearizable


def added(name: str, begin: float, end: float = inf) -> Operation:
    return Operation("add", begin, end, name)


def read(begin: float, end: float, *seen: str) -> Operation:
    return Operation("read", begin, end, seen=seen)


def missing(begin: float, end: float) -> Operation:
    return Operation("read", begin, end, seen=None)


def deleted(begin: float, end: float = inf) -> Operation:
    return Operation("delete", begin, end)


RIGHT = {
    "nothing happened": [],
    "one after the other": [added("a", 0, 1), added("b", 2, 3), read(4, 5, "a", "b")],
    "at the same time, in either order": [added("a", 0, 3), added("b", 0, 3), read(4, 5, "b", "a")],
    "a read in the middle of a command sees it": [added("a", 0, 9), read(1, 2, "a")],
    "a read in the middle of a command does not see it": [added("a", 0, 9), read(1, 2)],
    "nobody was told, and it is there": [added("a", 0), read(5, 6, "a")],
    "nobody was told, and it comes late": [added("a", 0), read(5, 6), read(7, 8, "a")],
    "nobody was told, and it never comes": [added("a", 0), added("b", 1, 2), read(5, 6, "b")],
    "deleted, and gone": [added("a", 0, 1), deleted(2, 3), missing(4, 5)],
    "a deletion of which nobody was told": [deleted(0), read(1, 2), missing(3, 4)],
    "a message that came before the deletion": [deleted(0, 9), added("a", 1, 2), missing(10, 11)],
}
WRONG = {
    "told that it is done, and it is not there": [added("a", 0, 1), read(2, 3)],
    "there before it was sent": [read(0, 1, "a"), added("a", 2, 3)],
    "there twice": [added("a", 0, 1), read(2, 3, "a", "a")],
    "there, and nobody sent it": [read(0, 1, "a")],
    "in the other order": [added("a", 0, 1), added("b", 2, 3), read(4, 5, "b", "a")],
    "seen, and then not any more": [added("a", 0), read(1, 2, "a"), read(3, 4)],
    "two readers who saw two orders": [added("a", 0, 9), added("b", 0, 9), read(1, 2, "a"), read(3, 4, "b", "a")],
    "gone before anybody deleted it": [missing(0, 1), deleted(2, 3)],
    "deleted, and still there": [added("a", 0, 1), deleted(2, 3), read(4, 5, "a")],
    "done after it was deleted": [deleted(0, 1), added("a", 2, 3)],
    "deleted, and back again": [deleted(0), missing(1, 2), read(3, 4)],
}


@pytest.mark.parametrize("told", RIGHT)
def test_a_history_that_an_order_explains_is_right(told: str) -> None:
    assert is_linearizable(RIGHT[told])


@pytest.mark.parametrize("told", WRONG)
def test_a_history_that_no_order_explains_is_wrong(told: str) -> None:
    assert not is_linearizable(WRONG[told])


def test_many_commands_at_once_are_judged_by_what_readers_saw() -> None:
    names = [f"u{number}" for number in range(8)]
    at_once = [added(name, 0, 1) for name in names]
    assert is_linearizable([*at_once, read(2, 3, *reversed(names))])
    assert not is_linearizable([*at_once, read(2, 3, *names), read(4, 5, *reversed(names))])


def test_a_history_that_is_too_wide_is_not_called_right() -> None:
    with pytest.raises(ValueError, match="too many orders"):
        is_linearizable([*(added(f"u{number}", 0, 1) for number in range(30)), deleted(2, 3), added("late", 4, 5)])
