"""The summary of a session says what its view says, and is computed from the records alone."""

from hypothesis import given

import gateway.model as m
from tests.support.examples import examples
from tests.support.record_streams import sessions


def summary(*events: m.AnyEvent) -> m.SessionSummary:
    records = [m.Record(seq=seq, at=float(seq), session_id="s", event=event) for seq, event in enumerate(events, 1)]
    found = m.summarize(None, records)
    assert found is not None
    return found


def private(**fields: object) -> dict[str, object]:
    return {m.PRIVATE: {"nova": fields}}


@examples(200)
@given(session=sessions())
def test_a_summary_agrees_with_the_view_after_every_record(session: list[m.Record]) -> None:
    view, found = m.SessionView(session_id=session[0].session_id), None
    for record in session:
        m.apply(view, record)
        found = m.summarize(found, (record,))
        assert found is not None
        assert (found.title, found.agent_id, found.created_at, found.updated_at, found.status, found.closed) == (
            view.title, view.agent_id, view.created_at, view.updated_at, view.status, view.closed)
        assert found.outcome == (view.ended.outcome if view.ended else None)
    assert m.summarize(None, session) == found


def test_a_session_that_was_not_created_has_no_summary() -> None:
    started = m.Record(seq=1, at=1.0, session_id="s", event=m.TurnStarted(command_id="c"))
    assert m.summarize(None, (started,)) is None


def test_ids_that_a_dialect_keeps_are_labels() -> None:
    found = summary(m.SessionCreated(agent="a", metadata=private(user_id="ann", colour="red", size_id=7, note_id="")))
    assert found.labels == ("", "open", "agent=a", "nova.user_id", "nova.user_id=ann")
    assert m.field_label("nova", "user_id", "ann") in found.labels
    assert m.agent_label("a") in found.labels


def test_secrets_and_long_values_are_no_labels() -> None:
    found = summary(m.SessionCreated(agent="a", metadata=private(secrets={"key_id": "k"}, long_id="x" * 1000)))
    assert found.fields == ()


def test_labels_stay_if_public_metadata_change() -> None:
    created = m.SessionCreated(agent="a", metadata=private(user_id="ann"))
    assert summary(created, m.SessionUpdated(metadata={"colour": "blue"})).fields == summary(created).fields
    assert summary(created, m.SessionUpdated(metadata=private(user_id="bob"))).fields == (
        "nova.user_id", "nova.user_id=bob")


def test_a_closed_session_is_not_open_and_a_failed_turn_is_a_label() -> None:
    created = m.SessionCreated(agent="a")
    failed = m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR)
    assert summary(created, m.TurnStarted(command_id="c"), failed).labels == ("", "open", "failed", "agent=a")
    assert summary(created, m.SessionClosed(reason=m.CloseReason.ARCHIVED)).labels == ("", "agent=a")


def test_the_agent_is_the_one_that_clients_know() -> None:
    created = m.SessionCreated(agent="a", settings=m.Settings(agent_id="mine"))
    assert summary(created).agent_id == "mine"
    assert summary(created, m.SessionUpdated(settings=m.Settings())).agent_id == "a"
    assert summary(created, m.SessionUpdated(agent="b")).agent_id == "mine"
