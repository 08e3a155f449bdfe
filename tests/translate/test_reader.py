"""What kind of recording it is shows in its first line; how the bytes are cut does not matter."""

import pytest

from gateway.ports.remote import ParsedFrame
from gateway.translate import reader
from gateway.translate.reader import RecordingReader
from gateway.translate.recording_format import AnyRecordedItem, ServerFrame, StoredRecord, UnreadableRecording

EVENTS = b": open\n\nevent: a\ndata: {\"n\": 1}\nid: 7\n\nevent: b\r\ndata: {\"n\":\r\ndata: 2}\r\n\r\ndata: [DONE]\n\n"
FRAMES = b'\xef\xbb\xbf{"event":"a","data":{"n":1}}\n\n42["b",{"n":2}]\n2\n'


def read(
    stream: bytes, size: int = 1 << 16, dialect: str | None = "aap"
) -> tuple[list[AnyRecordedItem], RecordingReader]:
    reader = RecordingReader(dialect)
    pieces = [piece for at in range(0, len(stream), size) for piece in reader.feed(stream[at:at + size])]
    return [*pieces, *reader.end()], reader


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 16])
def test_events_however_they_are_cut(size: int) -> None:
    pieces, reader = read(EVENTS, size)
    assert pieces == [
        ServerFrame(line=6, frame=ParsedFrame("a", {"n": 1}, "7")),
        ServerFrame(line=10, frame=ParsedFrame("b", {"n": 2}, "7")),
        ServerFrame(line=12, frame=ParsedFrame("message", {}, "7")),
    ]
    assert not reader.torn


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 16])
def test_frames_however_they_are_cut(size: int) -> None:
    pieces, reader = read(FRAMES, size)
    assert pieces == [
        ServerFrame(line=1, frame=ParsedFrame("a", {"n": 1})),
        ServerFrame(line=3, frame=ParsedFrame("b", {"n": 2})),
    ]
    assert not reader.torn


def test_the_last_event_needs_no_empty_line() -> None:
    pieces, reader = read(b'event: a\ndata: {"n": 1}')
    assert [piece.frame for piece in pieces if isinstance(piece, ServerFrame)] == [ParsedFrame("a", {"n": 1})]
    assert not reader.torn


def test_half_an_event_is_none() -> None:
    pieces, reader = read(b'data: {}\n\nevent: a\n')
    assert len(pieces) == 1
    assert reader.torn


def test_a_comment_at_the_end_is_nothing_torn() -> None:
    assert not read(b"data: {}\n\n: heartbeat\n")[1].torn


def test_records_with_their_first_line_and_without() -> None:
    record = b'{"seq":1,"at":1.5,"session_id":"s","event":{"type":"turn.started","command_id":"c"}}\n'
    for stream in (record, b'{"format":"dragoman log","model":1}\n' + record):
        [piece], _ = read(stream, dialect=None)
        assert isinstance(piece, StoredRecord)
        assert (piece.record.session_id, piece.at) == ("s", 1.5)


def test_records_of_a_newer_house_are_refused() -> None:
    with pytest.raises(UnreadableRecording, match=r"line 1: this was written by a newer Dragoman \(model 99"):
        read(b'{"format":"dragoman log","model":99}\n', dialect=None)


def test_a_line_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 100)
    with pytest.raises(UnreadableRecording, match="line 2: it has more than 100 bytes"):
        read(b"data: {}\n" + b"x" * 200, 50)
