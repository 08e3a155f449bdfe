"""Turns are counted for each user and agent; made agents under their own ids."""

import pytest

import gateway.model as m
from gateway.ports import AgentCalls
from gateway.resources import agents
from gateway.resources.agents import AgentUsage

DONE = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)
FAILED = m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR)


def view(owner: str, agent: str, made: str | None = None, at: float = 1.0) -> m.SessionView:
    return m.SessionView(session_id="s", owner=owner, agent=agent, settings=m.Settings(agent_id=made), at=at)


def test_each_user_and_agent_is_counted_apart() -> None:
    usage = AgentUsage()
    usage.turn_ended(view("ann", "demo"), DONE)
    usage.turn_ended(view("ann", "demo", at=2.0), FAILED)
    usage.turn_ended(view("ann", "demo", made="tutor", at=3.0), DONE)
    assert usage.calls("ann", "demo") == AgentCalls(total=2, failed=1, last_used_at=2.0)
    assert usage.calls("ann", "tutor") == AgentCalls(total=1, last_used_at=3.0)
    assert usage.calls("bob", "demo") == AgentCalls()


def test_who_was_used_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "MAX_COUNTED", 2)
    usage = AgentUsage()
    for agent in ("a", "b", "a", "c"):
        usage.turn_ended(view("ann", agent), DONE)
    assert [usage.calls("ann", agent).total for agent in "abc"] == [2, 0, 1]
