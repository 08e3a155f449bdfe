"""What a translation cannot carry is counted by feature, and told with the table's notes."""

import gateway.model as m
from gateway.translate import LossCounter
from gateway.translate.loss_report import TranslationNotes
from tests.support.dialect_tables import table


def record(event: object) -> m.Record:
    return m.Record(seq=1, at=1.0, session_id="s", event=event)  # type: ignore[arg-type]


def test_what_was_dropped_is_counted() -> None:
    losses = LossCounter(None, table("aap"))
    for _ in range(3):
        losses.count(record(m.ToolOutput(call_id="c", delta="x")), 0)
    losses.count(record(m.ScopeOpened(parent="root")), 0)
    assert losses.is_lossy
    first, second = losses.lines()
    assert first == "3 × tool_output: dropped"
    assert second == f"1 × subagents: dropped ({table('aap').notes['subagents']})"


def test_what_arrives_in_a_lesser_form_is_told_and_no_loss() -> None:
    losses = LossCounter(None, table("aap"))
    losses.count(record(m.TurnEnded(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED)), 1)
    losses.count(record(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)), 1)
    assert [line.partition(" (")[0] for line in losses.lines()] == ["1 × stop_reasons: partial"]
    assert not losses.is_lossy


def test_what_is_carried_in_full_is_not_mentioned() -> None:
    losses = LossCounter(None, table("cas"))
    losses.count(record(m.SessionUpdated(title="Trip")), 1)
    losses.count(record(m.SessionUpdated(metadata={})), 0)
    assert [*losses.lines()] == []


def test_what_the_source_never_says_is_told() -> None:
    [line] = LossCounter(table("aap"), None).lines()
    assert line.startswith("aap itself never says: tool_output, subagents")


def test_remarks_are_told_in_order() -> None:
    remarks = TranslationNotes(torn=2, is_cut=True, records=1)
    remarks.unread["chat:send"] += 1
    assert [*remarks.lines()] == [
        "the recording ends in the middle of a line or an event; that was left out",
        "the recording ends in the middle of 2 turns; what was open is closed",
        "1 × chat:send of the client could not be read; left out",
    ]
