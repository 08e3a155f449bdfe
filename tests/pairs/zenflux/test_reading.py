"""The reader of ZenFlux reads what the documents of ZenFlux show, and nothing else."""

from typing import Any

import pytest

from tests.support.dialects.zenflux.pair_reader import PairReader


def zenflux(*told: tuple[str, dict[str, Any]]) -> PairReader:
    reading = PairReader()
    for kind, data in told:
        reading.hear({"type": kind, "data": data})
    return reading


def block(index: int, content: dict[str, Any], *deltas: str) -> list[tuple[str, dict[str, Any]]]:
    return [("content_start", {"index": index, "content_block": content}),
            *(("content_delta", {"index": index, "delta": delta}) for delta in deltas),
            ("content_stop", {"index": index})]


def test_zenflux_input_is_json_in_pieces() -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {}}
    back = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "", "is_error": True}
    facts = zenflux(*block(0, use, '{"query": "wea', 'ther"}'), *block(1, back, "not ", "found")).facts()
    assert facts["tool_calls"] == [("web_search", {"query": "weather"})]
    assert facts["tool_results"] == [("web_search", "not found", True)]


def test_zenflux_says_how_a_run_ended() -> None:
    stopped = zenflux(("session_stopped", {"reason": "user_requested"}), ("session_end", {"status": "cancelled"}))
    assert (stopped.stop, stopped.interrupted, stopped.over) == ("interrupted", True, True)
    failed = zenflux(("error", {"error": {"type": "overloaded_error", "message": "busy"}}))
    assert failed.facts()["faults"] == [("overloaded_error", "busy")]
    with pytest.raises(AssertionError, match="after session_end"):
        zenflux(("session_end", {"status": "completed"}), ("message_stop", {}))
