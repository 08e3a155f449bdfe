"""The reader of AAP reads what the documents of AAP show, and nothing else."""

from typing import Any

import pytest

from tests.support.dialects.aap.pair_reader import PairReader


def aap(*told: tuple[str, dict[str, Any]]) -> PairReader:
    reading = PairReader(("paint",), ("calc",))
    for event, data in (("turn_start", {}), *told):
        reading.hear(event, data)
    return reading


def called(call_id: str, name: str) -> tuple[str, dict[str, Any]]:
    return "tool_call", {"toolCallId": call_id, "name": name, "input": {}}


STOP = ("turn_stop", {"stopReason": "tool_use"})


def test_aap_stops_for_what_the_client_is_to_settle() -> None:
    reading = aap(called("1", "paint"), called("2", "calc"), called("3", "Agent"), STOP)
    facts = reading.facts()
    assert (facts["client_tools"], facts["permissions"]) == ([("paint", {})], [("calc", {})])
    assert facts["parallel_tools"] == 3
    reading.answered("1")
    assert [*reading.pending] == ["2", "3"]


@pytest.mark.parametrize("told", [
    [("text", {"text": "whole"})], [("turn_start", {})], [STOP], [("turn_stop", {"stopReason": "tired"})],
    [called("1", "x"), called("1", "x")], [("tool_result", {"toolCallId": "9", "content": ""})],
    [called("1", "paint"), ("tool_result", {"toolCallId": "1", "content": ""})],
], ids=["mode", "start", "nothing to do", "reason", "id twice", "no call", "own tool"])
def test_aap_is_read_strictly(told: list[tuple[str, dict[str, Any]]]) -> None:
    with pytest.raises((AssertionError, KeyError)):
        aap(*told)
