"""Frames as bytes: envelopes, splices, optional keys, both framings, and values of every kind."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.ports import Framing
from gateway.yaml_positions import Problems
from mappings.language import Table, Vocabulary, load_table
from tests.support.frames import BodyEncoder

MakeRecord = Callable[..., m.Record]
FRAMINGS: tuple[Framing, ...] = ("json", "sse")


def events_in(stream: bytes) -> list[dict[str, str]]:
    """What a reader makes of a stream: lines may end in CR LF, LF or CR, and a blank line ends an event."""
    found: list[dict[str, str]] = []
    current: dict[str, str] = {}
    for line in re.split("\r\n|\n|\r", stream.decode()):
        if line:
            field, _, value = line.partition(":")
            assert field in ("event", "id", "retry", "data") and field not in current
            current[field] = value.removeprefix(" ")
        elif current:
            found.append(current)
            current = {}
    assert not current
    return found


def delta(text: str, kind: m.BlockKind = m.BlockKind.TEXT) -> m.BlockDelta:
    return m.BlockDelta(block_id="b", message_id="m", kind=kind, delta=text)


def at_rest(event: Any) -> m.Record:
    return m.Record(seq=7, at=1767225600.25, session_id="ses_1", turn_id="turn_1", event=event)


def test_an_envelope_holds_the_body(plain: Table, record: MakeRecord) -> None:
    end = m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, usage=m.Usage(input_tokens=3),
                    fault=m.Fault(code=m.FaultCode.BACKEND, message="gone"))
    assert BodyEncoder(plain, "json").record(record(end)) == (
        b'{"type":"outcome","id":"evt_1_7","body":{"short":"ko","long":"something went wrong","price":"$5"}}',
        b'{"type":"bye","turn":"turn_1","why":"stopped","fault":"gone","usage":"{\\"input_tokens\\":3}",'
        b'"at":"2026-01-01T00:00:00.250Z"}',
    )


def test_an_envelope_may_look_different_as_a_server_sent_event(plain: Table, record: MakeRecord) -> None:
    frames = BodyEncoder(plain, "sse").record(
        record(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN))
    )
    assert frames == (
        b"event: outcome\nid: 7\nretry: 500\n"
        b'data: {"at":1767225600250,"short":"ok","long":"all went well","price":"$5"}\n\n',
        b'data: {"why":"fine","fault":null,"usage":"{}"}\n\n',
    )


def test_a_variant_wins_over_the_plain_name(plain: Table, record: MakeRecord) -> None:
    say = BodyEncoder(plain, "json").record
    assert say(record(delta("{", m.BlockKind.TOOL_USE))) == ()
    (frame,) = say(record(delta("x", m.BlockKind.THINKING)), {"index": 2})
    assert frame == (b'{"type":"delta","turn":"turn_1","index":2,"100%":"x","at":"2026-01-01T00:00:00.250Z"}')


def test_names_the_dialect_adds_are_needed_where_they_are_used(plain: Table, record: MakeRecord) -> None:
    with pytest.raises(KeyError, match="index"):
        BodyEncoder(plain, "json").record(record(delta("x")))


def test_optional_keys_are_left_out(plain: Table, record: MakeRecord) -> None:
    say = BodyEncoder(plain, "json").record
    assert say(record(m.SessionUpdated(title="T"), turn_id=None)) == (
        b'{"type":"renamed","title":"T","at":"2026-01-01T00:00:00.250Z"}',)
    assert say(record(m.SessionUpdated(metadata={}))) == (
        b'{"type":"renamed","turn":"turn_1","tags":{},"at":"2026-01-01T00:00:00.250Z"}',)
    assert BodyEncoder(plain, "sse").record(record(m.SessionUpdated())) == (b"data: {}\n\n",)


def test_keys_written_out_win_over_spliced_ones(plain: Table, record: MakeRecord) -> None:
    (frame,) = BodyEncoder(plain, "json").record(record(m.CustomEvent(topic="t", payload={"type": "mine", "at": 1})))
    assert orjson.loads(frame) == {"type": "custom", "id": "evt_1_7", "body": {"type": "mine", "at": 1}}
    card = {"x": 1, "mood": "sour", "type": "card"}
    started = record(m.TurnStarted(command_id="c"))
    (frame,) = BodyEncoder(plain, "json").cue("mood.changed", started, {"mood": "bright", "card": card})
    assert orjson.loads(frame) == {
        "type": "mood", "turn": "turn_1", "x": 1, "mood": "bright", "at": "2026-01-01T00:00:00.250Z"}
    (frame,) = BodyEncoder(plain, "sse").cue("mood.changed", None, {"mood": "bright", "card": None})
    assert frame == b'data: {"mood":"bright"}\n\n'


def test_a_struct_can_be_spliced(plain: Table) -> None:
    (frame,) = BodyEncoder(plain, "sse").cue("mood.changed", None, {"mood": "bright", "card": m.Usage(output_tokens=2)})
    assert frame == b'data: {"output_tokens":2,"mood":"bright"}\n\n'


def test_a_body_may_be_a_list(plain: Table, record: MakeRecord) -> None:
    frames = BodyEncoder(plain, "sse").record(record(m.ToolOutput(call_id="c", delta="d")))
    assert frames == (b'event: out\ndata: ["c",{"text":"d"}]\n\n',)


def test_content_is_spelled_by_its_parts(plain: Table, record: MakeRecord) -> None:
    say = BodyEncoder(plain, "sse").record
    parts = (m.TextPart(text="a"), m.ThinkingPart(text="b"), m.FilePart(name="f", size=3))
    assert say(record(m.ToolReturned(call_id="c", content=parts))) == (
        b'data: {"content":[{"t":"a"},{"file":"f","size":3}]}\n\n',)
    assert say(record(m.ToolReturned(call_id="c", content="bare", meta={"k": (1, 2)}))) == (
        b'data: {"content":"bare","meta":{"k":[1,2]}}\n\n',)
    message = m.InputAccepted(command_id="c", command=m.SendMessage(content="bare"))
    (event,) = events_in(say(record(message), {"author": None})[0])
    assert orjson.loads(event["data"]) == {"at": 1767225600250, "words": "bare", "parts": [{"t": "bare"}], "by": None}


@pytest.mark.parametrize(("value", "written"), [
    ({m.AnnotationTopic.SEARCH: m.StopReason.ERROR}, b'{"search":"error"}'),
    ({"part": m.TextPart(text="x")}, b'{"part":{"kind":"text","text":"x"}}'),
    ({"n": 2**80}, b'{"n":1208925819614629174706176}'),
    ({"half": "\ud800"}, b'{"half":"\\ud800"}'),
    ({"list": (1, (2,))}, b'{"list":[1,[2]]}'),
])
def test_values_of_every_kind_are_written(plain: Table, record: MakeRecord, value: Any, written: bytes) -> None:
    (frame,) = BodyEncoder(plain, "json").record(record(m.CustomEvent(topic="t", payload=value)))
    assert frame == b'{"type":"custom","id":"evt_1_7","body":' + written + b"}"


def test_even_a_delta_may_hold_half_a_character(aap: Table, record: MakeRecord) -> None:
    assert BodyEncoder(aap, "sse").record(record(delta("\ud83d"))) == (
        b'event: text_delta\ndata: {"delta":"\\ud83d"}\n\n',)


def test_an_id_cannot_break_a_frame(
    plain_path: Path, record: MakeRecord, tmp_path: Path, plain_words: Vocabulary,
) -> None:
    over = tmp_path / "over.yaml"
    over.write_text("envelopes: { default@sse: { id: $session_id, event: $turn_id } }")
    table = load_table(plain_path, plain_words, [over])
    end = m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)
    frame = BodyEncoder(table, "sse").record(record(end, session_id="a\ndata: b\r", turn_id=None))[0]
    assert frame.startswith(b"id: adata: b\nretry: 500\ndata: {")


def test_an_envelope_that_is_no_server_sent_event(plain_path: Path, tmp_path: Path, plain_words: Vocabulary) -> None:
    over = tmp_path / "over.yaml"
    over.write_text("envelopes:\n  default@sse: $drop\n  flat@sse: $drop\n  held: { data: $drop }\n")
    table = load_table(plain_path, plain_words, [over])
    assert table.encoder("json")
    with pytest.raises(Problems) as told:
        table.encoder("sse")
    assert sorted(f"{Path(problem.position.file).name}:{problem.position.line}: {problem.message}"
                  for problem in told.value.problems) == [
        "over.yaml:4: a server-sent event needs an envelope with a key 'data'",
        "plain.yaml:14: a server-sent event has no place for a field 'type'; it has event, id, retry and data",
        "plain.yaml:16: a server-sent event has no place for a field 'type'; it has event, id, retry and data",
    ]


def test_names_and_cursors_travel_beside_the_bodies(plain: Table, record: MakeRecord) -> None:
    end = record(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN))
    for framing in FRAMINGS:
        frames = plain.encoder(framing).record(end, cursor=7)
        assert [(frame.name, frame.cursor) for frame in frames] == [("outcome", 7), ("bye", 7)]
        assert [frame.cursor for frame in plain.encoder(framing).record(end)] == [None, None]
        [word] = plain.encoder(framing).record(record(delta("x")), {"index": 1}, "evt_1")
        assert (word.cursor, b"x" in word.body) == ("evt_1", True)


def test_a_frame_without_variables_has_a_cursor_of_its_own(aap: Table) -> None:
    say = aap.encoder("sse").cue
    plain, numbered = say("turn.waiting", None), say("turn.waiting", None, None, 3)
    assert {frame.cursor for frame in plain} == {None}
    assert {frame.cursor for frame in numbered} == {3}
    assert [frame.body for frame in plain] == [frame.body for frame in numbered]


def test_an_event_of_socketio_has_its_name_beside_its_payload(aap: Table, record: MakeRecord) -> None:
    [frame] = aap.encoder("socketio").record(record(delta("Hi")))
    assert (frame.name, frame.body) == ("text_delta", b'{"delta":"Hi"}')


def test_an_envelope_that_is_no_event_of_socketio(plain_path: Path, tmp_path: Path, plain_words: Vocabulary) -> None:
    over = tmp_path / "over.yaml"
    over.write_text("envelopes:\n  default: { type: $drop, id: $drop, body: $drop, event: $turn_id, data: $body }\n")
    table = load_table(plain_path, plain_words, [over])
    with pytest.raises(Problems) as told:
        table.encoder("socketio")
    keys = "an event of Socket.IO needs an envelope with the keys 'event' and 'data', and no others"
    assert {problem.message for problem in told.value.problems} == {
        keys, "'event' of an event of Socket.IO must be a plain word or $wire"}


def test_an_encoder_is_made_once(plain: Table) -> None:
    assert plain.encoder("sse") is plain.encoder("sse")


@given(text=st.text())
def test_any_text_comes_back_from_a_server_sent_event(aap: Table, text: str) -> None:
    (frame,) = BodyEncoder(aap, "sse").record(at_rest(delta(text)))
    (event,) = events_in(frame)
    assert event["event"] == "text_delta"
    assert orjson.loads(event["data"]) == {"delta": text}


@given(text=st.text(), payload=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()))
def test_any_value_comes_back_from_json(plain: Table, text: str, payload: dict[str, Any]) -> None:
    say = BodyEncoder(plain, "json").record
    (frame,) = say(at_rest(delta(text)), {"index": 0})
    assert orjson.loads(frame)["100%"] == text
    small = {key: value for key, value in payload.items() if not isinstance(value, int) or abs(value) < 2**53}
    (frame,) = say(at_rest(m.CustomEvent(topic="t", payload=small)))
    assert orjson.loads(frame)["body"] == small
