"""What `dragoman record` wrote, line by line."""

import base64
from typing import Any

import orjson
import pytest

from gateway.ports.remote import ParsedFrame
from gateway.translate import recording_format
from gateway.translate.recording_format import (
    AnyRecordedItem,
    ClientFrame,
    InvalidFrame,
    RecordingParser,
    RejectedRequest,
    ResponseBody,
    ServerFrame,
    UnreadableRecording,
    parse_frames,
)

HEAD = {"type": "recording", "version": 1, "dialect": "aap", "started": "2026-01-01T00:00:00+00:00"}
START = 1_767_225_600.0


def read(*lines: dict[str, Any]) -> list[AnyRecordedItem]:
    reading = RecordingParser("aap")
    numbered = [(number, orjson.dumps(one)) for number, one in enumerate((HEAD, *lines), 1)]
    return [piece for number, one in numbered for piece in reading.take(number, one)]


def request(exchange: int = 1, method: str = "POST", path: str = "/x", **more: Any) -> dict[str, Any]:
    headers = more.pop("headers", [["Content-Length", "9"]])
    return line("request", exchange, 0.0, method=method, path=path, headers=headers, **more)


def line(kind: str, exchange: int = 1, at: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"type": kind, "exchange": exchange, "at": at, **more}


def test_both_sides_with_their_times() -> None:
    assert read(
        request(), line("request.body", text='{"a":1}'), line("response", status=200),
        line("event", at=2.0, text='event: x\ndata: {"n":1}\n\n'), line("event", at=3.0, text="event: y\ndata: {}\n\n"),
        line("end", ending="whole"),
    ) == [
        ClientFrame(line=3, at=START + 1, stream="1", frame=ParsedFrame("POST /x", {"a": 1})),
        ServerFrame(line=5, at=START + 2, stream="1", frame=ParsedFrame("x", {"n": 1}), connection="POST /x"),
        ServerFrame(line=6, at=START + 3, stream="1", frame=ParsedFrame("y", {})),
    ]


def test_an_event_may_be_in_pieces_or_in_bytes() -> None:
    encoded = base64.b64encode(b'data: {"n":1}\n\n').decode()
    pieces = read(request(), line("event", text="event: x\n"), line("event", base64=encoded))
    assert [piece.frame for piece in pieces if isinstance(piece, ServerFrame)] == [ParsedFrame("x", {"n": 1})]


def test_frames_of_a_socket_by_who_said_them() -> None:
    pieces = read(
        request(method="GET"), line("frame", **{"from": "client"}, text='42["say",{}]'),
        line("frame", **{"from": "server"}, text='42["said",{}]'), line("frame", **{"from": "server"}, base64="AA=="),
    )
    assert [(type(piece), piece.frame.name) for piece in pieces if isinstance(piece, ServerFrame | ClientFrame)] == [
        (ClientFrame, "say"), (ServerFrame, "said")]


def test_packets_that_are_polled_for() -> None:
    pieces = read(
        request(query="EIO=4&transport=polling"), line("request.body", text='42["say",{}]'),
        line("body", text='42["said",{}]\x1e2'),
    )
    assert [type(piece) for piece in pieces] == [ClientFrame, ServerFrame]


def test_a_request_without_a_body_says_what_its_name_says() -> None:
    [piece] = read(request(headers=[], path="/stop"))
    assert isinstance(piece, ClientFrame)
    assert piece.frame == ParsedFrame("POST /stop", {})
    assert read(request(headers=[], method="GET")) == []
    assert read(request(headers=[["Transfer-Encoding", "chunked"]])) == []


def test_answers_and_refusals() -> None:
    assert read(request(), line("body", text='{"sessionId":"s"}'), line("body", text="<html>")) == [
        ResponseBody(line=3, at=START + 1, stream="1", frame=ParsedFrame("", {"sessionId": "s"}))]
    assert [type(piece) for piece in read(request(), line("response", status=409))] == [RejectedRequest]
    assert [type(piece) for piece in read(request(), line("end", ending="refused"))] == [RejectedRequest]


def test_what_nobody_knows_says_nothing() -> None:
    strange = [line("strange"), line("event", exchange=9, text="data: {}\n\n"), {"type": "stopped", "exchanges": 1}]
    assert read(*strange, request(), line("request.body", text="a=b"), line("request.body", base64="AA==")) == []


def test_so_many_exchanges_are_open_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_format, "MAX_EXCHANGES", 1)
    pieces = read(request(1), request(2), line("event", 1, text="data: {}\n\n"), line("event", 2, text="data: {}\n\n"))
    assert [piece.stream for piece in pieces] == ["2"]


def test_an_event_that_is_no_json_has_nothing_in_it() -> None:
    [piece] = read(request(), line("event", text="event: x\ndata: hello\n\n"))
    assert isinstance(piece, ServerFrame)
    assert piece.frame == ParsedFrame("x", {})


@pytest.mark.parametrize("bad", [
    line("event"), line("response", status="?"), {"type": "request"},
    line("frame", **{"from": "server"}, text="nonsense"),
])
def test_a_line_that_is_not_whole_is_named(bad: dict[str, Any]) -> None:
    with pytest.raises(UnreadableRecording, match=r"^line 3: "):
        read(request(), bad)


@pytest.mark.parametrize(("text", "frames"), [
    ('{"event": "x", "data": {"a": 1}}', [ParsedFrame("x", {"a": 1})]),
    ('{"event": "x", "data": {"a": 1}, "id": "7"}', [ParsedFrame("x", {"a": 1}, "7")]),
    ('{"event": "x", "delta": "w"}', [ParsedFrame("x", {"event": "x", "delta": "w"})]),
    ('{"type": "event", "event": "x", "payload": {}}',
     [ParsedFrame("x", {"type": "event", "event": "x", "payload": {}})]),
    ('{"type": "agent.message"}', [ParsedFrame("agent.message", {"type": "agent.message"})]),
    ('{"a": 1}', [ParsedFrame("", {"a": 1})]),
    ('["chat:end", {"a": 1}]', [ParsedFrame("chat:end", {"a": 1})]),
    ('["bare"]', [ParsedFrame("bare", None)]),
    ('42["chat:end",{"a":1}]', [ParsedFrame("chat:end", {"a": 1})]),
    ('42/room,["chat:end",{"a":1}]', [ParsedFrame("chat:end", {"a": 1})]),
    ('4217["chat:end",{"a":1}]', [ParsedFrame("chat:end", {"a": 1})]),
    ('40{"sid":"x"}\x1e42["a",{}]\x1e2', [ParsedFrame("a", {})]),
    ("", []), ("2", []), ("3probe", []), ('0{"sid":"x"}', []), ("40", []), ('430[{"ok":true}]', []), ("41", []),
])
def test_a_text_says_these_frames(text: str, frames: list[ParsedFrame]) -> None:
    assert parse_frames(text) == frames


@pytest.mark.parametrize("text", ["nonsense", '"words"', "[]", "[1]", "{", "null", '42["half'])
def test_what_is_no_frame_is_refused(text: str) -> None:
    with pytest.raises(InvalidFrame):
        parse_frames(text)
