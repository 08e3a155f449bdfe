"""Records on the wire of a dialect, and as lines; what is lost is counted."""

import gateway.model as m
from gateway.ports import Frame
from gateway.translate import DialectWriter, LossCounter, RecordWriter
from gateway.translate.writer import TranslationNotes, as_recorded_bytes
from tests.support.dialect_tables import dialect, table

STREAM = [
    m.SessionCreated(agent="a"), m.TurnStarted(command_id="c"), m.MessageStarted(message_id="m"),
    m.BlockStarted(block_id="b", message_id="m", kind=m.BlockKind.TEXT),
    m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="one "),
    m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="two "),
]


def records(gap: float = 0.0) -> list[m.Record]:
    return [m.Record(seq=seq, at=1000.0 + seq * gap, session_id="s", turn_id="t", event=event)
            for seq, event in enumerate(STREAM, 1)]


def writing(name: str) -> DialectWriter:
    return DialectWriter(dialect(name), table(name), LossCounter(None, table(name)))


def test_each_framing_as_it_stands_on_the_wire() -> None:
    assert as_recorded_bytes(Frame(b"event: x\ndata: {}\n\n", "x"), "sse") == b"event: x\ndata: {}\n\n"
    assert as_recorded_bytes(Frame(b'{"type":"event","event":"x"}'), "json") == b'{"type":"event","event":"x"}\n'
    assert as_recorded_bytes(Frame(b'{"a":1}', 'x"y'), "socketio") == b'["x\\"y",{"a":1}]\n'
    assert as_recorded_bytes(Frame(b'{"event":"x","data":{}}', "x"), "json") == b'{"event":"x","data":{}}\n'


def test_words_that_are_held_back_come_when_they_are_due() -> None:
    zenflux = writing("zenflux")
    said = [zenflux.take(record) for record in records()]
    assert b"one " in said[-2]
    assert said[-1] == b""
    assert zenflux.deadline is not None
    assert zenflux.flush(zenflux.deadline - 0.01) == b""
    assert b"two " in zenflux.flush()
    assert zenflux.deadline is None


def test_what_is_due_before_a_record_comes_before_it() -> None:
    zenflux = writing("zenflux")
    said = b"".join(zenflux.take(record) for record in records(gap=10.0))
    assert said.index(b"one ") < said.index(b"two ")


def test_sessions_are_told_apart_and_forgotten() -> None:
    aap = writing("aap")
    first = b"".join(map(aap.take, records()))
    aap.forget("s")
    assert b"".join(map(aap.take, records())) == first


def test_lines_begin_with_what_they_are() -> None:
    lines = RecordWriter()
    first, second, *_ = [lines.take(record) for record in records()]
    assert first.startswith(b'{"format":"dragoman log","model":1}\n{"seq":1,')
    assert second.startswith(b'{"seq":2,')
    assert lines.flush() == b""
    lines.forget("s")


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
