"""The table read backwards: every word it writes comes back as itself, or as the likeliest that is written so."""

from enum import StrEnum
from typing import Any

import pytest

from adapters.blade.hearing_voices import usage_of
from adapters.blade.hearing_words import an_object, number, objects_of, optional_number, words
from gateway.errors import BackendFailed
from gateway.model import FaultCode, Level, Outcome, Role, StopReason, ToolStatus, Trigger, Usage
from tests.support.dialect_tables import table


@pytest.mark.parametrize(("enum_map", "kind", "lost"), [
    ("outcome", Outcome, set()), ("level", Level, set()), ("trigger", Trigger, set()), ("fault", FaultCode, set()),
    ("role", Role, {Role.TOOL}), ("tool_status", ToolStatus, {ToolStatus.PENDING}),
    ("stop_reason", StopReason, set(StopReason) - {StopReason.END_TURN, StopReason.MAX_STEPS, StopReason.ERROR}),
])
def test_words_come_back(enum_map: str, kind: type[StrEnum], lost: set[Any]) -> None:
    read = getattr(words(), enum_map)
    for member in kind:
        again = read[table("blade").word(enum_map, member)]
        assert (again is member) is (member not in lost)


def test_shapes_that_cannot_be_are_refused() -> None:
    for wrong in ("x", 7, None, [1]):
        with pytest.raises(BackendFailed, match="no object"):
            an_object(wrong, "a turn")
    with pytest.raises(BackendFailed, match="no list"):
        objects_of({}, "turns")
    assert objects_of(None, "turns") == []


def test_numbers_are_counts() -> None:
    assert [number(value) for value in (3, 3.9, -1, True, "3", None)] == [3, 3, 0, 0, 0, 0]
    assert [optional_number(value) for value in (0, None, "x")] == [0, None, None]
    assert usage_of({"usage": {"input_tokens": 3, "output_tokens": None}}) == Usage(input_tokens=3)
    assert usage_of({"usage": 7}) == Usage()
