"""Frames that nobody in their right mind would send, in any order: heard lawfully, or refused in words."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapters.blade.client.decoder import Decoder
from gateway.errors import BackendFailed
from tests.support.dialect_tables import dialect
from tests.support.dialects.blade.facts import CheckedDecoder
from tests.support.examples import examples

ids = st.sampled_from(["a", "b", "c"])
loops = st.sampled_from([None, "root", "agent:1", "agent:2"])
statuses = st.sampled_from([
    "pending", "done", "error", "cancelled", "awaiting_answer", "streaming", "completed", "paused", "failed", "?", None,
])
junk = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=4) | st.just([]) | st.just({})
arguments = st.sampled_from([
    None, "", "{", "{}", '{"x":1}', "[1]", {"x": 1}, '{"questions":[{"question":"Which?"}]}', 7,
])
calls = st.fixed_dictionaries({"id": ids}, optional={
    "tool_call_id": ids, "tool_name": st.sampled_from(["calc", "AskUserQuestion", "Agent"]),
    "arguments": arguments, "status": statuses, "result": junk, "duration_ms": junk,
    "pending_question_ref": st.none() | st.just({"child_loop_name": "agent:1"}),
})
blocks = st.fixed_dictionaries({}, optional={
    "type": st.sampled_from(["text", "thinking", "plan_status", "tool_ui", "tool_use", "novel"]), "tool_call_id": ids,
    "content": st.text(max_size=4) | junk, "text_delta": st.text(max_size=4) | st.none(),
    "block_index": st.integers(0, 2),
})
turns = st.fixed_dictionaries({"turn_id": ids}, optional={
    "role": st.sampled_from(["user", "assistant", "system", "?"]), "loop_id": loops, "status": statuses,
    "kind": st.sampled_from(["message", "compaction", None]), "parent_fork_tool_call_id": st.none() | ids,
    "blocks": st.lists(blocks, max_size=3) | st.none(), "tool_calls": st.lists(calls, max_size=3) | st.none(),
    "usage": junk, "memory_refs": junk, "model": junk, "duration_ms": junk,
})
wholes = st.just({}) | turns.map(lambda turn: {"turn": turn})
changes = st.builds(lambda call, block, whole: {**call, **block, **whole}, calls, blocks, wholes)
kinds = st.sampled_from(["add_content", "add_tool_call", "tool_result", "set_tool_status", "set_status", "sync"])
patches = st.fixed_dictionaries({"turn_id": ids, "data": changes}, optional={"loop_id": loops, "patch_type": kinds})
ends = st.fixed_dictionaries({}, optional={
    "status": st.sampled_from(["completed", "failed", "interrupted", "paused", None]), "result": junk,
    "finish_reason": st.sampled_from(["completed", "max_turns", "tool_error", "?", None]), "pause_tool": junk,
    "pause_tool_data": st.none() | st.just({"tool_call_id": "z", "arguments": {"questions": []}}),
})
names = st.sampled_from([
    "system:error", "system:notification", "session:updated", "novel", "turn:start", "turn:patch", "turn:end",
    "chat:end",
])
anything = st.one_of(
    st.tuples(st.just("chat:start"), st.just({})), st.tuples(st.just("turn:start"), turns),
    st.tuples(st.just("turn:patch"), patches), st.tuples(st.just("turn:end"), turns),
    st.tuples(st.just("chat:end"), ends), st.tuples(names, junk),
)


@examples(250)
@given(st.lists(anything, max_size=14))
def test_whatever_is_sent_is_heard_lawfully_or_refused(frames: list[tuple[str, Any]]) -> None:
    """What is refused ends it: whoever reads on has lost the thread."""
    ear = CheckedDecoder()
    with suppress(BackendFailed):
        for name, body in frames:
            if ear.grammar.turn.name != "RUNNING":
                ear.go_on()
            ear.hear(name, body)
        if ear.grammar.turn.name != "RUNNING":
            ear.go_on()
        ear.take(ear.hearing.end())


def test_the_dialect_offers_its_hearing() -> None:
    assert dialect("blade").decoder is Decoder
