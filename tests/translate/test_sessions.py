"""One session of a recording: each frame once, answers told to whoever wants to know, waiting that shows later."""

from collections.abc import Sequence

import gateway.model as m
from gateway.ids import make_mint
from gateway.ports.remote import DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd
from gateway.translate.record_composer import RecordComposer, RecordCopier
from gateway.translate.sessions import SessionTranslator
from tests.support.engine.engine_fixture import lawful, names

ASK = m.ContinuationAsk(turn=1, message="go on?")


class Script:
    """A hearing that says what its frames say: `ask X`, `go`, `end`, or nothing."""

    def __init__(self) -> None:
        self.paused = False
        self.settled: list[tuple[str, m.Answer]] = []
        self.settings: m.Settings | None = None
        self.interruptions = 0

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]:
        word, _, ref = frame.name.partition(" ")
        if word == "ask":
            self.paused = True
            return [RemoteAsk(ask=ASK, ref=ref)]
        if word in ("go", "end"):
            self.paused = False
        return [RemoteTurnEnd()] if word == "end" else [m.NoticePosted(topic="t", title=ref)] if word == "note" else []

    def end(self) -> Sequence[DecodedItem]:
        return []

    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        self.settled.append((asked.ref, answer))

    def configure(self, settings: m.Settings) -> None:
        self.settings = settings

    def on_reconnect(self) -> None:
        self.interruptions += 1


RECORDS: list[m.Record] = []
"""What was written since `written` was called last."""


def listening() -> tuple[SessionTranslator, Script]:
    script = Script()
    RECORDS.clear()
    return SessionTranslator(RecordComposer("s", make_mint("l"), RECORDS.append), script), script


def written(done: None) -> list[m.Record]:
    """The records of what was done just now."""
    records = list(RECORDS)
    RECORDS.clear()
    return records


def hear(session: SessionTranslator, *names: str) -> list[m.Record]:
    return [record for name in names for record in written(session.feed(ParsedFrame(name, {}), 1.0))]


def test_several_things_asked_one_after_the_other_are_waited_for_together() -> None:
    session, script = listening()
    records = hear(session, "ask a", "tick", "ask b")
    assert session.is_resting
    records += written(session.rest())
    assert names(records) == ["session.created", "turn.started", "input.requested", "input.requested", "turn.suspended"]
    assert not session.is_resting
    records += written(session.sent(m.ContinueTurn(request_id="b", proceed=False), "1", 1.0))
    records += hear(session, "go", "end")
    assert names(records)[5:] == ["input.resolved", "input.accepted", "input.resolved", "turn.resumed", "turn.ended"]
    assert dict(script.settled) == {
        "a": m.ContinueTurn(request_id=""), "b": m.ContinueTurn(request_id="b", proceed=False),
    }, "what is supposed gives way to what was answered"
    lawful(records)


def test_a_turn_that_waits_at_the_end_waits_on() -> None:
    session, _ = listening()
    records = [*hear(session, "ask a"), *written(session.rest()), *written(session.end(9.0))]
    assert lawful(records).turn is m.TurnPhase.SUSPENDED
    assert not session.runs


def test_a_frame_that_was_told_before_is_not_told_again() -> None:
    session, script = listening()
    session.connected("GET /stream")
    assert [session.is_new(ParsedFrame("x", {}, each)) for each in ("1", "1", "2", "")] == [True, True, True, True]
    session.connected("GET /stream")
    assert [session.is_new(ParsedFrame("x", {}, each)) for each in ("2", "2", "3", "1")] == [False, False, True, False]
    assert script.interruptions == 1


def test_what_is_asked_can_be_seen_by_its_own_word() -> None:
    session, script = listening()
    hear(session, "ask a")
    assert written(session.sent(m.Configure(settings=m.Settings(system="be kind")), "1", 1.0)) == []
    assert script.settings == session.view.settings == m.Settings(system="be kind")
    assert session.view.asks["a"].ask is ASK


def test_a_refusal_is_for_what_was_said_on_that_stream() -> None:
    session, _ = listening()
    for stream, said in (("2", 1), ("1", 0)):
        session.sent(m.SendMessage(content="hello"), "1", 1.0)
        session.refused(stream)
        assert names(hear(session, "note x", "end")).count("input.accepted") == said


def test_a_copy_passes_records_on() -> None:
    session, _ = listening()
    records = hear(session, "ask a", "go")
    copy = RecordCopier(RECORDS.append)
    assert [passed for record in records for passed in written(copy.take(record))] == records
    assert copy.runs
    assert written(copy.rest()) == []
    ends = written(copy.end(9.0))
    assert names(ends) == ["turn.ended"]
    assert [record.seq for record in ends] == [*range(len(records) + 1, len(records) + len(ends) + 1)]
    lawful([*records, *ends])
