"""The readers of these tests know documents, not code; and read what the documents show."""

import ast
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.dialects.aap.pair_reader import AapPairReader
from tests.support.dialects.blade.pair_reader import BladePairReader
from tests.support.dialects.cas.pair_reader import CasPairReader
from tests.support.dialects.zenflux.pair_reader import ZenfluxPairReader
from tests.support.pairs.reader import TurnReader, at_once

READERS = Path(__file__).parents[1] / "support" / "pairs"
PRODUCT = ("gateway", "adapters", "mappings", "conformance")


@pytest.mark.parametrize("path", sorted(READERS.glob("*reader.py")), ids=lambda path: path.name)
def test_a_reader_imports_nothing_that_it_is_to_judge(path: Path) -> None:
    tree = ast.walk(ast.parse(path.read_text()))
    named = [name.name for node in tree if isinstance(node, ast.Import) for name in node.names]
    named += [node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    assert [name for name in named if name.split(".")[0] in PRODUCT] == []
    ours = [name for name in named if name.startswith("tests.")]
    assert [name for name in ours if not name.startswith("tests.support.pairs.reader")] == []


def test_calls_are_parallel_while_they_are_open_together() -> None:
    trace = [("a", True), ("b", True), ("a", False), ("c", True), ("b", False), ("c", False)]
    assert at_once(trace) == 2
    assert at_once(trace, without={"b"}) == 0
    assert at_once([("a", True), ("a", False), ("b", True)]) == 0


def test_what_a_client_does_itself_is_no_result_of_the_server() -> None:
    reading = TurnReader(("paint",))
    reading.call("c1", "paint", {})
    reading.returned("c1", "painted")
    assert reading.facts()["tool_results"] == []


# -- AAP --------------------------------------------------------------------------------------------------------------

def aap(*told: tuple[str, dict[str, Any]]) -> AapPairReader:
    reading = AapPairReader(("paint",), ("calc",))
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


# -- CAS --------------------------------------------------------------------------------------------------------------

def cas(*told: dict[str, Any]) -> CasPairReader:
    reading = CasPairReader(("paint",))
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


# -- Blade ------------------------------------------------------------------------------------------------------------

TURN = {"turn_id": "t", "role": "assistant", "loop_id": "root", "kind": "message", "parent_fork_tool_call_id": None}


def blade(*patches: tuple[str, dict[str, Any]], **end: Any) -> BladePairReader:
    reading = BladePairReader()
    reading.hear("turn:start", TURN)
    for kind, data in patches:
        reading.hear("turn:patch", {"turn_id": "t", "patch_type": kind, "data": data})
    whole = {"blocks": [], "tool_calls": [], "usage": None, "memory_refs": None, "status": "completed", **end}
    reading.hear("turn:end", {**TURN, **whole})
    return reading


def test_blade_text_is_what_the_patches_add_up_to() -> None:
    patches = [("add_content", {"type": "text", "text_delta": word}) for word in ("法国", "的首都是", "巴黎。")]
    said = [{"type": "text", "content": "法国的首都是巴黎。"}]
    assert blade(*patches, blocks=said).facts()["text"] == "法国的首都是巴黎。"
    with pytest.raises(AssertionError, match="add up"):
        blade(*patches[:2], blocks=said)


def test_blade_asks_with_a_call_that_waits() -> None:
    asked = {"questions": [{"question": "选择部署环境", "options": [{"label": "staging"}]}], "source_loop": None}
    call = {"id": "tc", "tool_name": "AskUserQuestion", "arguments": orjson.dumps(asked).decode(),
            "status": "awaiting_answer"}
    reading = blade(("add_tool_call", call), tool_calls=[call])
    assert reading.facts()["questions"] == [[("选择部署环境", False, ["staging"])]]
    assert [*reading.waiting] == ["tc"]


# -- ZenFlux ----------------------------------------------------------------------------------------------------------

def zenflux(*told: tuple[str, dict[str, Any]]) -> ZenfluxPairReader:
    reading = ZenfluxPairReader()
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
