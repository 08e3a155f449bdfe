"""Files of recorded traffic: our own and HAR, whole and broken."""

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.offline.judge import mounted
from conformance.offline.recording import Ending, Unusable, pairs
from conformance.offline.recording_file import read

HEAD = {"type": "recording", "version": 1, "dialect": "aap", "mount": "/aap"}
TURN = "event: turn_start\ndata: {}\n\n"
LINES: list[dict[str, Any]] = [
    HEAD,
    {"type": "request", "exchange": 1, "at": 0.1, "method": "POST", "path": "/aap/sessions/a%20/turns", "query": "x=1"},
    {"type": "request.body", "exchange": 1, "at": 0.1, "text": '{"stream": "delta"}'},
    {"type": "response", "exchange": 1, "at": 0.2, "status": 200, "headers": [["content-type", "text/event-stream"]]},
    {"type": "event", "exchange": 1, "at": 0.3, "text": TURN},
    {"type": "event", "exchange": 1, "at": 0.4, "text": ": beat\n\n"},
    {"type": "end", "exchange": 1, "at": 0.5, "ending": "cut"},
    {"type": "request", "exchange": 2, "at": 0.6, "method": "GET", "path": "/aap/ws"},
    {"type": "frame", "exchange": 2, "at": 0.7, "from": "client", "text": "hello"},
    {"type": "frame", "exchange": 2, "at": 0.8, "from": "server", "base64": base64.b64encode(b"\xff").decode()},
    {"type": "stopped"},
]


def written(path: Path, lines: list[Any], tail: str = "\n") -> Path:
    path.write_text("\n".join(orjson.dumps(line).decode() for line in lines) + tail, encoding="utf-8")
    return path


def test_a_recording_is_read_line_by_line(tmp_path: Path) -> None:
    recording = read(written(tmp_path / "a.jsonl", LINES))
    turn, socket = recording.exchanges
    assert (recording.dialect, recording.mount, recording.remarks) == ("aap", "/aap", [])
    assert (turn.place, turn.sent, turn.ending, turn.param("x")) == ("line 2", {"stream": "delta"}, Ending.CUT, "1")
    assert [(told.place, told.event.event) for told in turn.events] == [("line 5", "turn_start")]
    assert [comment.text for comment in turn.comments] == ["beat"]
    assert [(frame.place, frame.is_sent, frame.text) for frame in socket.frames] == [
        ("line 9", True, "hello"),
        ("line 10", False, None),
    ]
    assert [names for _, names in mounted(recording, "aap").of("POST /sessions/{}/turns")] == [("a ",)]


def test_a_body_may_go_on_after_its_answer(tmp_path: Path) -> None:
    """A server that refuses a large body does not wait for all of it."""
    request = {"type": "request", "exchange": 1, "at": 0.1, "method": "POST", "path": "/aap/sessions", "headers": []}
    answer = {"type": "response", "exchange": 1, "at": 0.2, "status": 413, "headers": []}
    end = {"type": "end", "exchange": 1, "at": 0.3, "ending": "whole"}
    rest = {"type": "request.body", "exchange": 1, "at": 0.4, "text": "{}"}
    (item,) = read(written(tmp_path / "a.jsonl", [HEAD, request, answer, end, rest])).exchanges
    assert (item.status, item.is_whole, item.sent) == (413, True, {})


def test_a_cut_last_line_is_said_and_the_rest_judged(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", LINES[:5], '\n{"type": "event", "exch')
    recording = read(path)
    assert recording.remarks == ["line 6 is cut off; the rest was judged without it"]
    assert len(recording.exchanges[0].events) == 1
    assert recording.exchanges[0].ending is Ending.OPEN


def test_unknown_lines_are_passed_over(tmp_path: Path) -> None:
    recording = read(written(tmp_path / "a.jsonl", [*LINES, {"type": "weather", "exchange": 1}]))
    assert recording.remarks == ["lines of unknown types were ignored: weather"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "the file is empty"),
        ("  \n\n", "the file is empty"),
        ("hello\n", "not JSON"),
        ("[1]\n", "a line must be an object, not list"),
        ('{"type": "request"}\n', "the first line must be"),
        ('{"type": "recording", "version": 2}\n', "this is version 2 of the format; version 1 is read here"),
        (orjson.dumps(HEAD).decode() + '\nbroken\n{"type": "stopped"}\n', r"a\.jsonl:2: not JSON"),
        (orjson.dumps(HEAD).decode() + '\n{"type": "request"}\n', ":2: a line of the type request is not whole: no '"),
        (orjson.dumps(HEAD).decode() + '\n{"type": "end", "exchange": 9, "ending": "whole"}\n', "is not whole: no 9"),
    ],
)
def test_a_broken_recording_says_what_is_wrong(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(Unusable, match=words):
        read(path)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="cannot be read"):
        read(tmp_path / "nothing.jsonl")


def entry(url: str, **more: Any) -> dict[str, Any]:
    told = {
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "time": 10,
        "request": {"method": "GET", "url": url, "headers": [{"name": ":authority", "value": "x"}]},
        "response": {"status": 200, "headers": [{"name": "Content-Type", "value": "application/json"}]},
    }
    return told | more


def written_har(path: Path, *entries: Any) -> Path:
    path.write_bytes(orjson.dumps({"log": {"entries": list(entries)}}))
    return path


def answer(**content: Any) -> dict[str, Any]:
    return {"status": 200, "headers": [], "content": content}


def test_a_har_file_is_read(tmp_path: Path) -> None:
    path = written_har(
        tmp_path / "a.har",
        entry("http://h/base/aap/meta", response=answer(text='{"version": 3}', mimeType="application/json")),
        entry("http://h/base/aap/sessions", response=answer(text=base64.b64encode(b"[1]").decode(), encoding="base64")),
        entry("http://h/logo.png", response=answer(text="x"), startedDateTime="2025-12-31T23:59:59+00:00"),
        entry(
            "ws://h/base/aap/meta",
            response={"status": 101, "headers": []},
            _webSocketMessages=[
                {"type": "send", "time": 1767225600.1, "opcode": 1, "data": "up"},
                {"type": "receive", "time": 1767225600.2, "opcode": 2, "data": "AA=="},
            ],
        ),
    )
    recording = mounted(read(path), "aap")
    assert recording.mount == "/base/aap"
    meta, listed, socket = recording.exchanges
    assert (meta.path, meta.json, meta.content_type) == ("/meta", {"version": 3}, "application/json")
    assert listed.json == [1]
    assert [(frame.is_sent, frame.text) for frame in socket.frames] == [(True, "up"), (False, None)]
    assert [item.place for item in recording.exchanges] == ["entry 1", "entry 2", "entry 4"]


def test_har_entries_are_put_in_the_order_of_time(tmp_path: Path) -> None:
    late = entry("http://h/aap/meta", startedDateTime="2026-01-01T00:00:09Z", response=answer(text="2"))
    early = entry("http://h/aap/meta", startedDateTime="2026-01-01T00:00:01Z", response=answer(text="1"))
    recording = read(written_har(tmp_path / "a.har", late, early))
    assert [item.json for item in recording.exchanges] == [1, 2]
    assert recording.exchanges[0].ended < recording.exchanges[1].order


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("hello", "neither a recording"),
        ("{}", "no HAR file: it has no log.entries"),
        ('{"log": {"entries": []}}', "has no entries"),
        ('{"log": {"entries": [{"request": {}}]}}', "entry 1 is not whole: KeyError 'startedDateTime'"),
    ],
)
def test_a_broken_har_file_says_what_is_wrong(tmp_path: Path, document: str, words: str) -> None:
    path = tmp_path / "a.har"
    path.write_text(document, encoding="utf-8")
    with pytest.raises(Unusable, match=words):
        read(path)


def test_a_har_file_without_bodies_says_how_to_save_one(tmp_path: Path) -> None:
    path = written_har(tmp_path / "a.har", entry("http://h/aap/meta", response=answer(size=12)))
    with pytest.raises(Unusable, match="HAR with content"):
        read(path)


def test_a_har_file_of_another_dialect_gets_a_hint(tmp_path: Path) -> None:
    path = written_har(tmp_path / "a.har", entry("http://h/socket.io/?EIO=4", response=answer(text="0{}")))
    with pytest.raises(Unusable, match=r"nothing in it \(1 exchanges\) looks like aap; is it a recording of blade\?"):
        mounted(read(path), "aap")


def test_a_large_recording_is_read_without_keeping_it_twice(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    piece = {"type": "event", "exchange": 1, "at": 1.0, "text": "data: " + "x" * 10_000 + "\n\n"}
    with path.open("wb") as file:
        for line in LINES[:4]:
            file.write(orjson.dumps(line) + b"\n")
        for _ in range(2_000):
            file.write(orjson.dumps(piece) + b"\n")
    recording = read(path)
    assert sum(len(it.data) for it in recording.exchanges[0].pieces) == 2_000 * 10_008
    assert len(recording.exchanges[0].events) == 2_000


def test_queries_keep_empty_values() -> None:
    assert pairs("a=1&a=&b") == (("a", "1"), ("a", ""), ("b", ""))
