"""The SSE parser: the event-stream format, however the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.kit.sse import ServerEvent, SseParser

FIELDS = ["event: a", "data: x", "data:y", "data", "id: 1", "id", "retry: 5", ": note", "", "unknown: z", "data: 中😀"]


def events(*pieces: bytes) -> list[ServerEvent]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_end_in_any_of_three_ways(end: str) -> None:
    stream = end.join(["event: greet", "data: one", "data: two", "", "data: three", "", ""])
    assert events(stream.encode()) == [ServerEvent("greet", "one\ntwo"), ServerEvent("message", "three")]


def test_a_crlf_cut_in_two_is_one_line_end() -> None:
    assert events(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [ServerEvent("message", "a\nb")]


def test_an_empty_piece_between_cr_and_lf_changes_nothing() -> None:
    assert events(b"data: a\r", b"", b"\ndata: b\n\n") == [ServerEvent("message", "a\nb")]


def test_a_character_cut_in_two_is_whole() -> None:
    raw = "data: 中😀\n\n".encode()
    assert events(*(raw[place : place + 1] for place in range(len(raw)))) == [ServerEvent("message", "中😀")]


def test_a_byte_order_mark_is_dropped_once() -> None:
    assert events("\ufeffdata: a\n\n".encode()) == [ServerEvent("message", "a")]
    assert events("data: a\n\n\ufeffdata: b\n\n".encode()) == [ServerEvent("message", "a")]


def test_comments_say_nothing_and_are_kept() -> None:
    parser = SseParser()
    assert parser.feed(b": hello\n:\ndata: a\n: in between\n\n") == [ServerEvent("message", "a")]
    assert len(parser.comments) == 3


def test_an_event_knows_the_lines_it_was_made_of() -> None:
    (first, second) = events(b"id: 1\nevent: a\ndata: x\n\ndata: y\ndata: z\n\n")
    assert (first.fields, second.fields) == (("id", "event", "data"), ("data", "data"))


def test_an_id_lasts_and_retry_must_be_digits() -> None:
    parser = SseParser()
    first, second = parser.feed(b"id: 7\nretry: 250\ndata: a\n\nretry: soon\ndata: b\n\n")
    assert (first.id, second.id, parser.retry) == ("7", "7", 250)


def test_an_id_with_a_null_is_ignored() -> None:
    assert events(b"id: 7\ndata: a\n\nid: 8\x009\ndata: b\n\n")[1].id == "7"


def test_one_space_after_the_colon_is_not_content() -> None:
    assert events(b"data:  two\ndata:none\n\n") == [ServerEvent("message", " two\nnone")]


def test_an_event_without_data_or_without_its_blank_line_is_none() -> None:
    assert events(b"event: lonely\n\nevent: kept\ndata: x\n\ndata: unfinished\n") == [ServerEvent("kept", "x")]


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b'event: x\n{"a": 1}\n\n', ("event", '{"a"')),
        (b"event: x\ndata: 1\nevent: y\ndata: 2\n", ("event", "data", "event", "data")),
        (b"event: x\ndata: 1\n\n: heartbeat\n\nretry: 5\n\nid: 7\n\n", ()),
    ],
)
def test_lines_that_make_no_event_are_known(raw: bytes, lines: tuple[str, ...]) -> None:
    parser = SseParser()
    parser.feed(raw)
    assert parser.undelivered == lines


def test_bytes_that_are_not_utf8_do_not_break_it() -> None:
    assert events(b"data: \xff\n\n") == [ServerEvent("message", "\ufffd")]


def cut(raw: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(raw) + 1) for place in places), len(raw)]
    return [raw[start:end] for start, end in pairwise(bounds)]


@given(
    st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from(["\n", "\r", "\r\n"])), max_size=30),
    st.lists(st.integers(min_value=0, max_value=2000), max_size=20),
    st.booleans(),
)
def test_any_cut_of_a_stream_gives_the_same_events(
    lines: list[tuple[str, str]], places: list[int], marked: bool
) -> None:
    raw = (("\ufeff" if marked else "") + "".join(field + end for field, end in lines)).encode()
    assert events(*cut(raw, places)) == events(raw)


@given(st.binary(max_size=200), st.lists(st.integers(min_value=0, max_value=200), max_size=20))
def test_any_cut_of_any_bytes_gives_the_same_events(raw: bytes, places: list[int]) -> None:
    assert events(*cut(raw + b"\n\n", places)) == events(raw + b"\n\n")
