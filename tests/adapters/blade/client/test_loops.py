"""Loops of agents: which turn belongs to which, what opens one, and what ends with it."""

from typing import Any

import pytest

import gateway.model as m
from adapters.blade.client.loops import DecodedCall, DecodedTurn, Loops, stop_reason_of
from gateway.ids import make_mint
from gateway.ports import ScopedEvent


def loops_with_call(**told: Any) -> tuple[Loops, DecodedCall]:
    """A turn of the agent that has called another one."""
    loops = Loops(make_mint())
    root, _ = loops.of({})
    turn = loops.turns["t1"] = DecodedTurn("t1", root)
    made = m.ToolCall(call_id="call_1", name="Agent", input=told)
    call = turn.calls["tc_1"] = DecodedCall("tc_1", turn, made=made)
    return loops, call


@pytest.mark.parametrize(("told", "scope_id"), [
    ({}, m.ROOT),
    ({"loop_id": "agent:1"}, m.ROOT),
    ({"fork": "tc_1"}, "fork:tc_1"),
    ({"fork": "tc_1", "loop_id": m.ROOT}, "fork:tc_1"),
    ({"fork": "tc_1", "loop_id": "agent:1"}, "agent:1"),
])
def test_a_turn_that_no_call_has_forked_is_the_agents_own(told: dict[str, Any], scope_id: str) -> None:
    loops, _ = loops_with_call()
    assert loops.of(told)[0].scope_id == scope_id


def test_a_loop_is_opened_once_with_the_call_that_started_it() -> None:
    loops, call = loops_with_call(description="Look")
    loop, [opened] = loops.of({"fork": "tc_1", "loop_id": "agent:1"})
    assert opened == ScopedEvent("agent:1", m.ScopeOpened(parent=m.ROOT, call_id="call_1", title="Look"))
    assert loops.of({"fork": "tc_1", "loop_id": "agent:1"}) == (loop, [])
    assert loops.forked_by(call) == [loop]


def test_the_end_of_a_loop_ends_those_that_it_has_called() -> None:
    loops, _ = loops_with_call()
    outer, _ = loops.of({"fork": "tc_1", "loop_id": "agent:1"})
    turn = loops.turns["t2"] = DecodedTurn("t2", outer)
    turn.calls["tc_2"] = DecodedCall("tc_2", turn)
    inner, _ = loops.of({"fork": "tc_2", "loop_id": "agent:2"})
    ended = [event.scope_id for event in loops.close(outer) if isinstance(event, ScopedEvent)]
    assert (ended, outer.is_open, inner.is_open) == (["agent:2", "agent:1"], False, False)


def test_a_turn_whose_last_word_is_a_call_ended_for_it() -> None:
    _, call = loops_with_call()
    assert stop_reason_of(call.turn) is m.StopReason.END_TURN
    call.turn.is_calling = True
    assert stop_reason_of(call.turn) is m.StopReason.TOOL_USE
