"""Turns of servers that keep to the documents and are not ours: other habits, the same conversation."""

from typing import Any

import pytest

import gateway.model as m
from gateway.ports import ScopedEvent
from tests.support.dialects.blade.facts import CheckedDecoder


def starting(**turn: Any) -> CheckedDecoder:
    ear = CheckedDecoder()
    ear.hear("chat:start", {})
    ear.hear("turn:start", {"turn_id": "t1", "role": "assistant", "status": "streaming", **turn})
    return ear


def patch(ear: CheckedDecoder, kind: str, turn_id: str = "t1", **data: Any) -> None:
    ear.hear("turn:patch", {"turn_id": turn_id, "patch_type": kind, "data": data})


def words(ear: CheckedDecoder, delta: str | None, content: str | None = None, kind: str = "text", **more: Any) -> None:
    patch(ear, "add_content", type=kind, text_delta=delta, content=content, **more)


def ended(ear: CheckedDecoder, turn_id: str = "t1", **turn: Any) -> CheckedDecoder:
    ear.hear("turn:end", {"turn_id": turn_id, "role": "assistant", "status": "completed", **turn})
    ear.hear("chat:end", {"status": "completed"})
    return ear


def parts(ear: CheckedDecoder) -> list[Any]:
    [message] = ear.facts.close().messages["root"]
    return message


def deltas(ear: CheckedDecoder) -> list[str]:
    return [said.delta for said in ear.said if isinstance(said, m.BlockDelta)]


# -- words ------------------------------------------------------------------------------------------------------------

def test_the_example_of_the_documents() -> None:
    ear = starting()
    words(ear, "法国", "法国")
    words(ear, "的首都是", "法国的首都是")
    words(ear, "巴黎。", "法国的首都是巴黎。")
    blocks = [{"type": "text", "content": "法国的首都是巴黎。"}]
    assert parts(ended(ear, blocks=blocks)) == [("text", "法国的首都是巴黎。")]
    assert deltas(ear) == ["法国", "的首都是", "巴黎。"]


@pytest.mark.parametrize("told", [
    [("a", None), ("b", None), ("c", None)],
    [(None, "a"), (None, "ab"), (None, "abc")],
    [("a", "a"), ("b", "b"), ("c", "c")],
    [("a", "a"), ("b", "ab"), ("b", "ab"), ("c", "abc")],
    [("a", "a"), ("c", "abc")],
    [(None, None), ("abc", "abc")],
])
def test_words_by_whatever_tells_them(told: list[tuple[str | None, str | None]]) -> None:
    """By what is new, by the whole, by both; told twice, or with a gap."""
    ear = starting()
    for delta, content in told:
        words(ear, delta, content)
    assert parts(ended(ear, blocks=[{"type": "text", "content": "abc"}])) == [("text", "abc")]


def test_words_that_grow_on_after_a_result_are_not_told_again() -> None:
    """A server may keep to its block where ours would begin another."""
    ear = starting()
    words(ear, "Let me see", "Let me see")
    patch(ear, "add_tool_call", id="tc_1", tool_name="calc", arguments="{}", status="pending")
    patch(ear, "tool_result", tool_call_id="tc_1", result="42", status="done", duration_ms=3)
    words(ear, ": 42", "Let me see: 42")
    said = parts(ended(ear, blocks=[{"type": "text", "content": "Let me see: 42"}]))
    assert said == [("text", "Let me see"), ("call", "tc_1", "calc", {}, None), ("text", ": 42")]


def test_blocks_of_one_kind_may_follow_each_other() -> None:
    ear = starting()
    words(ear, "one", "one", block_index=0)
    words(ear, "two", "two", block_index=1)
    words(ear, "!", "two!", block_index=1)
    words(ear, "hm", "hm", kind="thinking", block_index=2)
    blocks = [{"type": "text", "content": "one"}, {"type": "text", "content": "two!"},
              {"type": "thinking", "content": "hm"}]
    assert parts(ended(ear, blocks=blocks)) == [("text", "onetwo!"), ("thinking", "hm")]
    assert sum(getattr(said, "name", "") == "block.ended" for said in ear.said) == 3


def test_a_turn_that_is_over_says_no_more() -> None:
    ear = starting()
    words(ear, "all", "all")
    ear.hear("turn:end", {"turn_id": "t1", "status": "completed"})
    words(ear, " and more", "all and more")
    ear.hear("chat:end", {"status": "completed"})
    assert parts(ear) == [("text", "all")]


def test_a_turn_nobody_began_is_heard_all_the_same() -> None:
    ear = CheckedDecoder()
    ear.hear("chat:start", {})
    words(ear, "hello", "hello")
    assert parts(ended(ear)) == [("text", "hello")]


# -- what else a turn has ---------------------------------------------------------------------------------------------

def test_pieces_are_told_once_and_what_repeats_a_call_is_not() -> None:
    ear = starting()
    patch(ear, "add_content", type="planning_enter", content=None)
    patch(ear, "add_content", type="mode_change", content={"from": "a", "to": "b"})
    patch(ear, "add_tool_call", id="tc_1", tool_name="map", arguments="{}", status="pending")
    result = {"ok": True, "_meta": {"bridge": {"action": "x"}}}
    patch(ear, "tool_result", tool_call_id="tc_1", result=result, status="done")
    patch(ear, "add_content", type="tool_bridge", content={"action": "x"}, tool_call_id="tc_1")
    blocks = [
        {"type": "planning_enter"}, {"type": "tool_use", "content": {}, "tool_call_id": "tc_1"},
        {"type": "mode_change", "content": {"from": "a", "to": "b"}},
        {"type": "tool_bridge", "content": {"action": "x"}, "tool_call_id": "tc_1"},
        {"type": "tool_ui", "content": {"target": "inline"}, "tool_call_id": "tc_1"},
    ]
    assert parts(ended(ear, blocks=blocks)) == [
        ("data", "planning_enter", None), ("data", "mode_change", {"from": "a", "to": "b"}),
        ("call", "tc_1", "map", {}, None), ("data", "tool_ui", {"target": "inline"}),
    ]
    assert ear.facts.results == {"tc_1": ('{"ok":true}', False, {"bridge": {"action": "x"}})}


def test_a_message_has_its_model_usage_time_and_memories() -> None:
    ear = starting(model="m-1", context_window=1000)
    words(ear, "hi", "hi")
    refs = [{"id": 7, "content_preview": "likes tea", "skill_name": None}]
    ended(ear, usage={"input_tokens": 5, "output_tokens": 6}, duration_ms=77, memory_refs=refs)
    [begun] = [said for said in ear.said if isinstance(said, m.MessageStarted)]
    [over] = [said for said in ear.said if isinstance(said, m.MessageEnded)]
    assert (begun.model, begun.context_window, begun.role) == ("m-1", 1000, m.Role.ASSISTANT)
    assert (over.usage, over.duration_ms) == (m.Usage(input_tokens=5, output_tokens=6), 77)
    assert [said.content for said in ear.said if getattr(said, "topic", None) is m.AnnotationTopic.MEMORY_REFS] == [
        refs
    ]


def test_what_people_say_is_not_the_agents() -> None:
    ear = CheckedDecoder()
    ear.hear("chat:start", {})
    ear.hear("turn:start", {"turn_id": "u1", "role": "user", "blocks": [{"type": "text", "content": "hello"}]})
    ear.hear("turn:patch", {"turn_id": "u1", "patch_type": "set_status", "data": {"status": "completed"}})
    ear.hear("turn:end", {"turn_id": "u1", "role": "user", "blocks": [{"type": "text", "content": "hello"}]})
    assert ear.said == []


def test_a_summary_is_told_once() -> None:
    ear = CheckedDecoder()
    turn = {"turn_id": "c1", "role": "system", "kind": "compaction", "compaction_id": "cmp_1", "summary_full": "All.",
            "summary_preview": "A", "archived_count": 4, "tokens_before": 90, "tokens_after": 10, "trigger": "manual"}
    for name in ("chat:start", "turn:start", "turn:end", "turn:end"):
        ear.hear(name, turn)
    assert ear.facts.compactions == [("All.", "A", 4, 90, 10, m.CompactionTrigger.MANUAL)]


@pytest.mark.parametrize(
    ("status", "outcome", "stop"),
    [
        ("completed", m.Outcome.COMPLETED, m.StopReason.END_TURN),
        ("failed", m.Outcome.FAILED, m.StopReason.ERROR),
        ("interrupted", m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED),
        ("novel", m.Outcome.COMPLETED, m.StopReason.END_TURN),
    ],
)
def test_how_a_turn_came_out(status: str, outcome: m.Outcome, stop: m.StopReason) -> None:
    ear = ended(starting(), status=status)
    [over] = [said for said in ear.said if isinstance(said, m.MessageEnded)]
    assert (over.outcome, over.stop_reason) == (outcome, stop)


# -- sub-agents -------------------------------------------------------------------------------------------------------

def test_sub_agents_go_by_their_loops_and_end_with_the_call_that_brought_them_about() -> None:
    ear = starting()
    patch(ear, "add_tool_call", id="tc_1", tool_name="Agent", arguments='{"description": "Look"}', status="pending")
    ear.hear("turn:start", {"turn_id": "t2", "loop_id": "agent:1", "parent_fork_tool_call_id": "tc_1",
                            "role": "assistant"})
    patch(ear, "add_tool_call", "t2", id="tc_2", tool_name="Agent", arguments="{}", status="pending")
    ear.hear("turn:start", {"turn_id": "t3", "parent_fork_tool_call_id": "tc_2", "role": "assistant"})
    patch(ear, "add_content", "t3", type="text", text_delta="deep", content="deep")
    patch(ear, "tool_result", tool_call_id="tc_1", result="seen", status="done")
    opened = [said for said in ear.said if isinstance(said, ScopedEvent) and isinstance(said.event, m.ScopeOpened)]
    assert [(said.scope_id, said.event.parent, said.event.call_id, said.event.title) for said in opened] == [  # type: ignore[union-attr]
        ("agent:1", "root", "tc_1", "Look"), ("fork:tc_2", "agent:1", "tc_2", None)]
    assert list(ear.grammar.scopes) == ["root"], "both are done"
    ended(ear)
    assert ear.facts.close().messages["fork:tc_2"] == [[("text", "deep")]]
    assert ear.facts.results["tc_2"][1] is True, "nobody heard what became of it"


def test_a_turn_that_is_only_read_has_its_calls_in_their_places() -> None:
    ear = CheckedDecoder()
    ear.go_on()
    ear.hear("turn:end", {
        "turn_id": "t1", "role": "assistant",
        "blocks": [{"type": "text", "content": "Before."}, {"type": "tool_use", "tool_call_id": "tc_1", "content": {}},
                   {"type": "text", "content": "Between."}, {"type": "tool_result", "tool_call_id": "tc_1"},
                   {"type": "tool_use", "tool_call_id": "tc_nobody", "content": {"x": 1}}],
        "tool_calls": [{"id": "tc_1", "tool_name": "calc", "status": "done", "result": "42"}],
    })
    [[*parts]] = ear.facts.close().messages["root"]
    assert [part[0] for part in parts] == ["text", "call", "text", "data"]


def test_a_sub_agent_whose_caller_is_fetched_first_says_the_rest() -> None:
    """After a gap: the caller's turn has the result already, and the sub-agent's turn has words that were missed."""
    ear = CheckedDecoder()
    ear.go_on()
    parent = {"turn_id": "t1", "role": "assistant"}
    child = {"turn_id": "t2", "role": "assistant", "loop_id": "agent:1", "parent_fork_tool_call_id": "tc_1"}
    ear.hear("turn:start", {**parent, "tool_calls": [{"id": "tc_1", "tool_name": "Agent", "status": "pending"}]})
    ear.hear("turn:start", child)
    ear.hear("turn:end", {**parent, "tool_calls": [{"id": "tc_1", "tool_name": "Agent", "status": "done"}]})
    ear.hear("turn:end", {**child, "blocks": [{"type": "text", "content": "missed"}]})
    ear.hear("chat:end", {"status": "completed"})
    assert ear.facts.close().messages["agent:1"] == [[("text", "missed")]]


def test_a_call_does_not_end_the_sub_agent_that_makes_it() -> None:
    """A server that names a sub-agent after one of the sub-agent's own calls."""
    ear = CheckedDecoder()
    ear.go_on()
    done = [{"id": "tc_1", "tool_name": "calc", "status": "done"}, {"id": "tc_2", "tool_name": "calc"}]
    ear.hear("turn:start", {"turn_id": "t1", "parent_fork_tool_call_id": "tc_1", "role": "assistant",
                            "tool_calls": done})
    ear.hear("turn:end", {"turn_id": "t1", "parent_fork_tool_call_id": "tc_1", "role": "assistant",
                          "blocks": [{"type": "text", "content": "still here"}]})
    assert ear.facts.close().messages["fork:tc_1"][-1][-1] == ("text", "still here")


def test_an_agent_that_forks_waits_with_its_sub_agent() -> None:
    asked = '{"questions": [{"question": "Which?", "options": [{"label": "this"}]}], "source_loop": {"loop_name": "x"}}'
    ear = starting()
    patch(ear, "add_tool_call", id="tc_1", tool_name="Agent", arguments="{}", status="pending")
    ear.hear("turn:start", {"turn_id": "t2", "loop_id": "x", "parent_fork_tool_call_id": "tc_1", "role": "assistant"})
    patch(ear, "add_tool_call", "t2", id="tc_2", tool_name="AskUserQuestion", arguments=asked, status="awaiting_answer")
    patch(ear, "set_tool_status", tool_call_id="tc_1", status="awaiting_answer")
    for turn_id in ("t2", "t1"):
        ear.hear("turn:end", {"turn_id": turn_id, "status": "paused"})
    ear.hear("chat:end", {"status": "completed"})
    assert ear.hearing.paused
    [one] = ear.asked
    assert (one.ref, one.scope_id) == ("tc_2", "x")
    ear.hear("chat:start", {})
    patch(ear, "tool_result", "t2", tool_call_id="tc_2", result="this", status="done")
    patch(ear, "set_tool_status", tool_call_id="tc_1", status="pending")
    patch(ear, "tool_result", tool_call_id="tc_1", result="done", status="done")
    ear.hear("chat:end", {"status": "completed"})
    assert ear.facts.results == {"tc_2": ("this", False, None), "tc_1": ("done", False, None)}
    assert not ear.hearing.paused


def test_a_sub_agent_whose_turn_goes_on_after_its_end_is_opened_again() -> None:
    ear = starting()
    patch(ear, "add_tool_call", id="tc_1", tool_name="Agent", arguments="{}", status="pending")
    child = {"turn_id": "t2", "role": "assistant", "loop_id": "agent:1", "parent_fork_tool_call_id": "tc_1"}
    ear.hear("turn:start", {**child, "status": "streaming"})
    patch(ear, "add_tool_call", "t2", id="tc_2", tool_name="erase", arguments="{}", status="pending")
    patch(ear, "tool_result", tool_call_id="tc_1", result="", status="done")
    patch(ear, "add_tool_call", "t2", id="tc_3", tool_name="clock", arguments="{}", status="running")
    opened = [
        each.scope_id for each in ear.said if isinstance(each, ScopedEvent) and isinstance(each.event, m.ScopeOpened)
    ]
    assert opened == ["agent:1", "agent:1"]
    ended(ear)
    ear.facts.close()
