"""The reader of CAS reads what the documents of CAS show, and nothing else."""

from typing import Any

import pytest

from tests.support.dialects.cas.pair_reader import PairReader


def cas(*told: dict[str, Any]) -> PairReader:
    reading = PairReader(("paint",))
    for number, event in enumerate(told):
        reading.hear({"id": f"evt_{number}", **event})
    return reading


def idle(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "session.status_idle", "status": "idle", "stop_reason": {"type": kind, **more}}


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "agent.message", "content": [{"type": "text", "text": text}], **more}


def test_cas_waits_for_the_events_it_names() -> None:
    use = {"name": "calc", "input": {"expression": "1"}, "evaluated_permission": "ask"}
    reading = cas({"type": "agent.tool_use", **use}, {"type": "agent.custom_tool_use", "name": "paint", "input": {}},
                  idle("requires_action", event_ids=["evt_0", "evt_1"]))
    facts = reading.facts()
    assert facts["permissions"] == [("calc", {"expression": "1"})]
    assert facts["client_tools"] == [("paint", {})]
    assert [event_id for event_id, _ in reading.waiting] == ["evt_0", "evt_1"]
    assert not reading.over


def test_cas_threads_are_voices_of_their_own() -> None:
    made = {"type": "session.thread_created", "session_thread_id": "t1", "role": "child",
            "created_by_tool_use_id": "evt_0"}
    use = {"type": "agent.tool_use", "name": "Agent", "input": {}, "evaluated_permission": "allow"}
    reading = cas(use, made, message("mine"), idle("end_turn"))
    reading.overhear([message("its", id="evt_9", session_thread_id="t1"), {**made, "id": "evt_1"}])
    assert reading.facts()["subagents"] == [["a sub-agent", "its"], []]
    assert reading.facts()["text"] == "mine"


def test_cas_deltas_add_up_to_their_event() -> None:
    delta = {"type": "content_delta", "index": 0, "content": {"type": "text", "text": "a"}}
    begun = {"type": "event_start", "event": {"id": "evt_2", "type": "agent.message"}}
    grown = {"type": "event_delta", "event_id": "evt_2", "delta": delta}
    assert cas(begun, grown, message("a")).facts()["text"] == "a"
    with pytest.raises(AssertionError, match="add up"):
        cas(begun, grown, message("b"))
    with pytest.raises(AssertionError, match="never came"):
        cas(begun, grown, idle("end_turn"))
