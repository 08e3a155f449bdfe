"""Turns begun, suspended and ended from what is heard, as the engine would have done it."""

import gateway.model as m
from gateway.client import StreamAssembler
from gateway.ids import make_mint
from gateway.ports.remote import DecodedItem, RemoteAsk, RemoteTurnEnd
from gateway.translate import record_composer
from gateway.translate.record_composer import RecordComposer
from tests.support.engine.engine_fixture import lawful, names

CALL = m.ToolCall(call_id="call_1", name="calc", input={"a": 1})


class Hall:
    """A composer, what it is told, and what it has made of that."""

    def __init__(self) -> None:
        self.records: list[m.Record] = []
        self.composer = RecordComposer("sess_1", make_mint("c"), self.records.append)
        self.assembler = StreamAssembler(make_mint("s"))
        self.at = 1.0

    def hear(self, *heard: DecodedItem) -> "Hall":
        for one in heard:
            self.keep(self.composer.add_item(one, self.at))
        return self

    def keep(self, done: None) -> "Hall":
        """What was done is in the records; half a second passes."""
        self.at += 0.5
        return self

    def words(self, text: str = "hi") -> "Hall":
        return self.hear(*self.assembler.text_delta("w", text, m.BlockKind.TEXT), *self.assembler.finish(
            usage=m.Usage(input_tokens=1, output_tokens=2)))

    @property
    def names(self) -> list[str]:
        lawful(self.records)
        return names(self.records)


def test_a_turn_begins_with_what_was_said_and_ends_with_what_it_cost() -> None:
    hall = Hall()
    hall.keep(hall.composer.add_command(m.SendMessage(content="hello"), 1.0)).words().hear(RemoteTurnEnd())
    assert hall.names == [
        "session.created", "input.accepted", "turn.started", "message.started", "block.started", "block.delta",
        "block.ended", "message.ended", "turn.ended",
    ]
    ended = hall.records[-1].event
    assert isinstance(ended, m.TurnEnded)
    assert (ended.usage, ended.duration_ms) == (m.Usage(input_tokens=1, output_tokens=2), 2500)
    assert {record.turn_id for record in hall.records[1:]} == {hall.records[1].turn_id}


def test_without_what_was_said_the_turn_begins_all_the_same() -> None:
    assert Hall().words().hear(RemoteTurnEnd()).names[:3] == ["session.created", "turn.started", "message.started"]


def test_what_was_refused_was_not_said() -> None:
    hall = Hall()
    hall.keep(hall.composer.add_command(m.SendMessage(content="hello"), 1.0))
    hall.composer.refused()
    assert "input.accepted" not in hall.words().names


def test_what_is_said_twice_is_said_once() -> None:
    hall = Hall()
    hall.keep(hall.composer.add_command(m.SendMessage(content="hello"), 1.0)).words()
    hall.keep(hall.composer.add_command(m.SendMessage(content="hello"), 1.0)).hear(RemoteTurnEnd()).words().hear(
        RemoteTurnEnd()
    )
    assert hall.names.count("input.accepted") == 1
    assert hall.names.count("turn.started") == 2


def test_the_turn_waits_and_goes_on_with_the_answer() -> None:
    hall = Hall()
    hall.hear(*hall.assembler.whole_call("k", CALL), *hall.assembler.finish(m.StopReason.TOOL_USE))
    hall.hear(RemoteAsk(ask=m.PermissionAsk(call=CALL), ref="ref_1")).keep(hall.composer.waits(hall.at))
    hall.keep(hall.composer.add_command(m.DecidePermission(request_id="ref_1", granted=False, reason="no"), hall.at))
    hall.hear(*hall.assembler.returned("call_1", "denied", is_error=True), RemoteTurnEnd())
    assert hall.names[-7:] == [
        "input.requested", "turn.suspended", "input.accepted", "input.resolved", "turn.resumed", "tool.returned",
        "turn.ended",
    ]
    [resolved] = [record.event for record in hall.records if isinstance(record.event, m.InputResolved)]
    assert (resolved.resolution, resolved.call_id) == (m.Resolution.DENIED, "call_1")


def test_an_answer_that_nobody_heard_let_the_turn_go_on() -> None:
    hall = Hall()
    hall.hear(RemoteAsk(ask=m.ContinuationAsk(turn=1, message="go on?"), ref="r")).keep(hall.composer.waits(hall.at))
    hall.words().hear(RemoteTurnEnd())
    [resolved] = [record.event for record in hall.records if isinstance(record.event, m.InputResolved)]
    assert resolved.resolution is m.Resolution.ANSWERED
    assert "input.accepted" not in hall.names


def test_more_may_be_asked_while_it_waits() -> None:
    hall = Hall()
    for ref in ("a", "b", "a"):
        hall.hear(RemoteAsk(ask=m.ContinuationAsk(turn=1, message="go on?"), ref=ref)).keep(
            hall.composer.waits(hall.at)
        )
    assert hall.names[2:] == [
        "input.requested", "turn.suspended", "turn.resumed", "input.requested", "turn.suspended", "turn.resumed",
        "turn.suspended",
    ]


def test_a_waiting_turn_that_is_given_up_is_cancelled() -> None:
    hall = Hall()
    hall.hear(RemoteAsk(ask=m.ContinuationAsk(turn=1, message="go on?"), ref="r")).keep(hall.composer.waits(hall.at))
    hall.keep(hall.composer.add_command(m.Interrupt(), hall.at))
    hall.hear(RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED))
    [resolved] = [record.event for record in hall.records if isinstance(record.event, m.InputResolved)]
    assert resolved.resolution is m.Resolution.CANCELLED
    assert hall.names[-3:] == ["input.accepted", "input.resolved", "turn.ended"]


def test_a_fault_is_told_before_the_end() -> None:
    fault = m.Fault(code=m.FaultCode.BACKEND, message="broken")
    hall = Hall().words().hear(RemoteTurnEnd(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=fault))
    assert hall.names[-2:] == ["fault.raised", "turn.ended"]


def test_what_belongs_to_no_turn_goes_with_the_next_or_stands_alone() -> None:
    hall = Hall().hear(m.SessionUpdated(title="Trip"))
    assert hall.names == []
    hall.words().hear(RemoteTurnEnd(), m.NoticePosted(topic="t", title="late"))
    assert hall.names[:3] == ["session.created", "turn.started", "session.updated"]
    hall.keep(hall.composer.finish(hall.at))
    assert hall.names[-2:] == ["turn.ended", "notice.posted"]


def test_so_much_is_held_back_and_no_more() -> None:
    hall = Hall().hear(*[m.NoticePosted(topic="t", title="n")] * (record_composer.MAX_HELD + 1))
    assert hall.names.count("notice.posted") == record_composer.MAX_HELD + 1


def test_a_turn_in_the_middle_is_ended() -> None:
    hall = Hall()
    hall.hear(*hall.assembler.whole_call("k", CALL), *hall.assembler.text_delta("w", "half"))
    hall.keep(hall.composer.finish(99.0))
    assert hall.names[-6:] == [
        "block.delta", "block.ended", "message.ended", "tool.status", "tool.returned", "turn.ended"]
    assert hall.records[-1].at < 10, "it ended when the last thing was heard"
    [message] = [record.event for record in hall.records if isinstance(record.event, m.MessageEnded)]
    assert message.outcome is m.Outcome.INTERRUPTED


def test_an_interruption_of_nothing_is_nothing() -> None:
    hall = Hall()
    assert hall.keep(hall.composer.add_command(m.Interrupt(), 1.0)).names == []


def test_a_compaction_begins_a_turn_like_a_message() -> None:
    hall = Hall()
    hall.keep(hall.composer.add_command(m.Compact(), 1.0)).hear(RemoteTurnEnd())
    accepted = hall.records[1].event
    assert isinstance(accepted, m.InputAccepted)
    assert isinstance(accepted.command, m.Compact)


def test_a_name_that_comes_late_is_taken_while_nothing_is_written() -> None:
    hall = Hall()
    hall.composer.called("sess_2")
    hall.words()
    hall.composer.called("sess_3")
    assert {record.session_id for record in hall.words().records} == {"sess_2"}
