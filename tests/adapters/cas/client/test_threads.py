"""Threads as scopes: opened when they are first told of, closed with the turn, and never mixed up."""

from typing import Any

import gateway.model as m
from gateway.ports import ScopedEvent
from gateway.ports.remote import ParsedFrame
from tests.adapters.cas.client.test_thread_decoder import frame, heard, turn

END = {"type": "end_turn"}


def created(thread: str = "sthr_1", parent: str = "sthr_0", **more: Any) -> ParsedFrame:
    return frame("session.thread_created", f"c-{thread}", session_thread_id=thread, parent_thread_id=parent,
                 agent_name="Helper", agent_id="agent_7", created_by_tool_use_id="e1", **{"role": "child", **more})


def status(word: str, id: str, thread: str = "sthr_1", **more: Any) -> ParsedFrame:
    return frame(f"session.thread_status_{word}", id, session_thread_id=thread, **more)


def says(text: str, id: str, thread: str | None = "sthr_1") -> ParsedFrame:
    return frame("agent.message", id, content=text, **({"session_thread_id": thread} if thread else {}))


def mail(kind: str, id: str, sender: str, recipient: str, **more: Any) -> ParsedFrame:
    return frame(f"agent.thread_message_{kind}", id, content=[{"type": "text", "text": "Hello."}],
                 from_session_thread_id=sender, to_session_thread_id=recipient, **more)


def test_a_thread_is_a_scope() -> None:
    [opened] = [
        one.event for one in heard(created()) if isinstance(one, ScopedEvent) and isinstance(one.event, m.ScopeOpened)
    ]
    assert opened == m.ScopeOpened(parent=m.ROOT, call_id="e1", agent="7", title="Helper", role="child")


def test_its_life_is_told() -> None:
    told = turn(
        created(), status("running", "e2", status="running"), says("I look.", "e3"),
        status("idle", "e4", status="blocked", stop_reason={"type": "requires_action", "event_ids": []}),
        status("running", "e5"), status("idle", "e6", status="idle", stop_reason=END),
        status("terminated", "e7", status="terminated", stop_reason=END), says("Too late.", "e8"),
    )
    assert [one[1:] for one in told.scopes] == [
        ("opened", m.ROOT, "Helper"),
        (m.ScopeStatus.RUNNING, None),
        (m.ScopeStatus.BLOCKED, m.StopReason.NEEDS_INPUT),
        (m.ScopeStatus.RUNNING, None),
        (m.ScopeStatus.IDLE, m.StopReason.END_TURN),
        (m.ScopeStatus.ENDED, m.StopReason.END_TURN),
    ]
    assert told.words("text", "scope_1") == ["I look."]


def test_a_thread_within_a_thread() -> None:
    told = turn(created(), created("sthr_2", "sthr_1"), says("deep", "e2", "sthr_2"))
    opened = [(one[0], one[2]) for one in told.scopes if one[1] == "opened"]
    assert opened == [("scope_1", m.ROOT), ("scope_2", "scope_1")]
    assert told.words("text", "scope_2") == ["deep"]


def test_a_thread_of_one_that_has_ended_is_the_agents_own() -> None:
    told = turn(created(), status("terminated", "e2"), created("sthr_2", "sthr_1"))
    assert [one[2] for one in told.scopes if one[1] == "opened"] == [m.ROOT, m.ROOT]


def test_threads_that_are_left_are_closed_with_the_turn() -> None:
    told = turn(created(), says("unfinished", "e2"))
    assert told.scopes[-1] == ("scope_1", m.ScopeStatus.ENDED, m.StopReason.END_TURN)


def test_a_thread_of_an_earlier_turn_is_opened_anew() -> None:
    told = turn(status("running", "e1", agent_name="Helper"), says("Again.", "e2"))
    assert told.scopes[0] == ("scope_1", "opened", m.ROOT, "Helper")
    assert told.words("text", "scope_1") == ["Again."]


def test_a_thread_that_is_put_away_later_is_not_told() -> None:
    assert turn(status("terminated", "e1", status="archived", stop_reason={"type": "archive"})).scopes == []


def test_the_coordinator_is_the_agent_itself() -> None:
    told = turn(
        created("sthr_0", "", role="coordinator"), created(), status("running", "e1", "sthr_0"),
        status("running", "e2", "sthr_9", role="coordinator"), says("I.", "e3", "sthr_0"), says("I too.", "e4", None),
    )
    assert told.words("text") == ["I.", "I too."]
    assert {one[0] for one in told.scopes} == {"scope_1"}


def test_mail_goes_both_ways() -> None:
    back = mail("received", "e2", "sthr_1", "sthr_0", is_error=True)
    told = turn(created(), mail("sent", "e1", "sthr_0", "sthr_1"), back)
    assert told.mail == [(m.ROOT, "scope_1", "Hello.", False), ("scope_1", m.ROOT, "Hello.", True)]


def test_a_thread_may_be_told_of_twice() -> None:
    again = frame("session.thread_created", "other", session_thread_id="sthr_1")
    assert len([one for one in turn(created(), again).scopes if one[1] == "opened"]) == 1
