"""The table read backwards: every word it writes comes back as itself, or as the likeliest that is written so."""

from enum import StrEnum
from functools import partial
from typing import Any

import pytest

import gateway.model as m
from gateway.client import optional_count, read_count, read_usage
from tests.support.dialect_tables import table


@pytest.mark.parametrize(
    ("enum_map", "kind", "lost"),
    [
        ("outcome", m.Outcome, set()),
        ("level", m.NoticeLevel, set()),
        ("trigger", m.CompactionTrigger, set()),
        ("fault", m.FaultCode, set()),
        ("role", m.Role, {m.Role.TOOL}),
        ("tool_status", m.ToolStatus, {m.ToolStatus.PENDING}),
        (
            "stop_reason",
            m.StopReason,
            set(m.StopReason) - {m.StopReason.END_TURN, m.StopReason.MAX_STEPS, m.StopReason.ERROR},
        ),
    ],
)
def test_words_come_back(enum_map: str, kind: type[StrEnum], lost: set[Any]) -> None:
    read = table("blade")._meanings(enum_map, kind)
    for member in kind:
        again = read[table("blade").word(enum_map, member)]
        assert (again is member) is (member not in lost)


def test_numbers_are_counts() -> None:
    assert [read_count(value) for value in (3, 3.9, -1, True, "3", None)] == [3, 3, 0, 0, 0, 0]
    assert [optional_count(value) for value in (0, None, "x")] == [0, None, None]
    told = partial(table("blade").read_object, "usage")
    assert read_usage(told({"input_tokens": 3, "output_tokens": None})) == m.Usage(input_tokens=3)
    assert read_usage(told({"input_tokens": "3", "output_tokens": -1})) == m.Usage()
    assert read_usage(None) == m.Usage()
