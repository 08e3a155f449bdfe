"""CAS's bodies: what a session and its threads look like in each state."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.server import views
from adapters.cas.server.stream_options import StreamOptions, session_stream_options, thread_id_of
from tests.support.dialect_tables import table

AGENT = {"id": "agent_1", "name": "made", "model": "m-1", "version": 3}
OWN = {"agent_id": "agent_1", "agent_version": 3, "environment_id": "env_1", m.SECRETS: {"A": "1"}}


def view(*events: m.Event | tuple[str, m.Event], private: dict[str, Any] | None = None) -> m.SessionView:
    """A session to which these things happened, a second apart."""
    metadata = {"a": "b", m.PRIVATE: {"cas": OWN if private is None else private}}
    said = [m.SessionCreated(agent="demo", metadata=metadata), *events]
    placed = [event if isinstance(event, tuple) else (m.ROOT, event) for event in said]
    return m.fold("sess_1", [
        m.Record(seq=seq, at=float(seq), session_id="sess_1", turn_id="turn_1", scope_id=scope, event=event)  # type: ignore[arg-type]
        for seq, (scope, event) in enumerate(placed, 1)
    ])


START = m.TurnStarted(command_id="c")
ASK = m.InputRequested(request_id="r", ask=m.ContinuationAsk(turn=1, message="on?"))
WAIT = m.TurnSuspended(pending=("r",))
END = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)


def test_a_session_shows_what_was_captured_and_nothing_private() -> None:
    shown = views.session_body(table("cas"), view(), AGENT, ["r"])
    assert (shown["agent"], shown["agent_id"], shown["environment_id"]) == (AGENT, "agent_1", "env_1")
    assert (shown["metadata"], shown["resources"]) == ({"a": "b"}, ["r"])
    assert shown["environment_variables"] == {"A": "1"}


def test_a_session_made_elsewhere_is_in_the_default_environment() -> None:
    shown = views.session_body(table("cas"), view(private={}), AGENT, [])
    assert (shown["environment_id"], shown["environment_variables"], shown["vault_ids"]) == ("env_default", {}, [])


@pytest.mark.parametrize(("events", "status", "turn", "thread", "stop"), [
    ((), "idle", "idle", "idle", {"type": "end_turn"}),
    ((START,), "running", "running", "running", {}),
    ((START, ASK, WAIT), "idle", "idle", "idle", {"type": "requires_action", "event_ids": ["evt_1_3"]}),
    ((START, ASK, WAIT, m.TurnResumed()), "running", "running", "running", {}),
    ((START, END), "idle", "idle", "idle", {"type": "end_turn"}),
    ((m.SessionClosed(reason=m.CloseReason.ARCHIVED),), "idle", "idle", "archived", {"type": "archive"}),
    ((m.SessionClosed(reason=m.CloseReason.TERMINATED),), "terminated", "idle", "terminated", {"type": "end_turn"}),
])
def test_what_a_session_is_doing(events: Any, status: str, turn: str, thread: str, stop: Any) -> None:
    at = view(*events)
    shown, coordinator = views.session_body(table("cas"), at, AGENT, []), views.thread_body(table("cas"), at, AGENT)
    assert (shown["status"], shown["turn_status"]) == (status, turn)
    assert (coordinator["status"], coordinator["stop_reason"]) == (thread, stop)
    assert (shown["archived_at"] is not None) is (thread == "archived")


def test_the_time_people_take_is_not_active() -> None:
    shown = views.session_body(table("cas"), view(START, ASK, WAIT, ASK, ASK, m.TurnResumed(), END), AGENT, [])
    assert shown["stats"] == {"active_seconds": 3.0, "duration_seconds": 7.0}
    shown = views.session_body(table("cas"), view(START, ASK), AGENT, [])
    assert shown["stats"] == {"active_seconds": 1.0, "duration_seconds": 2.0}


@pytest.mark.parametrize(("status", "word", "stop"), [
    (m.ScopeStatus.RUNNING, "running", {}),
    (m.ScopeStatus.BLOCKED, "blocked", {"type": "requires_action", "event_ids": ["evt_1_4"]}),
    (m.ScopeStatus.IDLE, "idle", {"type": "end_turn"}),
    (m.ScopeStatus.ENDED, "terminated", {"type": "end_turn"}),
    (m.ScopeStatus.ARCHIVED, "archived", {"type": "archive"}),
])
def test_what_a_sub_agent_is_doing(status: m.ScopeStatus, word: str, stop: Any) -> None:
    opened = m.ScopeOpened(parent=m.ROOT, agent="scout", title="Scout")
    at = view(START, ("scope_k", opened), ("scope_k", ASK), ("scope_k", m.ScopeStatusChanged(status=status)))
    shown = views.thread_body(table("cas"), at, AGENT, "scope_k")
    assert (shown["id"], shown["parent_thread_id"]) == ("sthr_k", "sthr_1")
    assert (shown["agent"]["id"], shown["name"], shown["role"]) == ("agent_scout", "Scout", "child")
    assert (shown["status"], shown["stop_reason"]) == (word, stop)


def test_equal_options_are_one_key() -> None:
    both = [StreamOptions(thread="k", deltas=("agent.message",), past=(3, "evt_1_3"), muted=(1, 2)) for _ in range(2)]
    assert len({*both, StreamOptions(thread="k", deltas=("agent.message",), past=(3, "evt_1_3"))}) == 2


def test_how_a_session_is_read() -> None:
    raw = view(private={**OWN, "incremental": True})
    assert session_stream_options(raw, None, as_list=False).raw
    assert not session_stream_options(raw, None, as_list=True).raw
    with_deltas = session_stream_options(raw, None, ("agent.message",), as_list=False)
    assert (with_deltas.raw, with_deltas.incremental, with_deltas.deltas) == (False, True, ("agent.message",))
    assert session_stream_options(view(private={}), "k", as_list=True).agent_id == "agent_demo"
    assert thread_id_of("sess_ab", m.ROOT) == "sthr_ab"
