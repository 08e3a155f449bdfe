"""JSON that is only carried: what is the same when it comes back, and what is not."""

import json
from typing import Any

import pytest

from conformance.kit.expect import Failed
from conformance.kit.json_round_trip import CARRIED, HUGE, SAFE, came_back, has_huge, written


@pytest.mark.parametrize("value", [CARRIED, HUGE, [], None, {"a": [1, 0.25]}])
def test_what_is_written_comes_back(value: Any) -> None:
    came_back("it", value, json.loads(written(value)))


def test_members_may_change_their_order_and_huge_numbers_their_last_digits() -> None:
    came_back("it", {"a": 1, "b": 10**30}, {"b": 1e30, "a": 1.0})
    came_back("it", SAFE + 2, float(SAFE + 2))


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ({"a": None}, {}),
        ([1], ["1"]),
        (True, 1),
        (False, 0),
        (SAFE, SAFE - 1),
        (10**30, str(10**30)),
        (2**63, 2**63 - 2**12),
        ({"a": [{}]}, {"a": [[]]}),
        (" a ", "a"),
    ],
)
def test_anything_else_is_another_value(sent: Any, seen: Any) -> None:
    with pytest.raises(Failed, match="it as it was sent"):
        came_back("it", sent, seen)


def test_huge_numbers_are_found_wherever_they_are() -> None:
    assert has_huge(HUGE)
    assert has_huge({"a": [{"b": -(2**70)}]})
    assert not has_huge(CARRIED)
