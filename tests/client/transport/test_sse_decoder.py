"""Server-sent events are the same events wherever the bytes are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.client import SseDecoder, SseEvent
from gateway.errors import BackendFailed

STREAM = (
    "\ufeff: a comment\n"
    "event: first\ndata: one\ndata: two\nid: 7\n\n"
    "data:no space\r\n\r\n"
    "data\rdata:\r\r"
    "retry: 250\nunknown: field\nid: a\0b\n\n"
    "event: nameless is forgotten without data\n\n"
    "data: zwölf Boxkämpfer 🥊\n\n"
    "data: never finished\n"
).encode()
EVENTS = [
    SseEvent("first", "one\ntwo", "7"),
    SseEvent("message", "no space", "7"),
    SseEvent("message", "\n", "7"),
    SseEvent("message", "zwölf Boxkämpfer 🥊", "7"),
]


def read(*pieces: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


def test_a_stream_in_one_piece() -> None:
    assert read(STREAM) == EVENTS


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_stream_in_small_pieces(size: int) -> None:
    assert read(*(STREAM[at:at + size] for at in range(0, len(STREAM), size))) == EVENTS


def test_a_stream_cut_at_every_byte() -> None:
    for cut in range(len(STREAM) + 1):
        assert read(STREAM[:cut], b"", STREAM[cut:]) == EVENTS


def test_a_line_end_of_two_bytes_is_not_counted_twice_when_it_is_cut() -> None:
    assert read(b"data: a\r", b"\n", b"\n", b"data: b\r", b"\n\r", b"\n") == [
        SseEvent("message", "a"), SseEvent("message", "b"),
    ]


lines = st.lists(st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=("Cs",))), min_size=1)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(st.lists(st.tuples(lines, ends), max_size=5), st.data())
def test_whatever_is_written_is_read(written: list[tuple[list[str], str]], data: st.DataObject) -> None:
    stream = "".join("".join(f"data: {line}{end}" for line in body) + end for body, end in written).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [event.data for event in read(*pieces)] == ["\n".join(body) for body, _ in written]


def test_the_wait_a_server_asks_for_is_known() -> None:
    decoder = SseDecoder()
    decoder.feed(b"retry: soon\nretry: 1500\n")
    assert decoder.retry_ms == 1500


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(BackendFailed, match="not UTF-8"):
        read(b"data: \xff\xfe\n")


@pytest.mark.parametrize("pieces", [
    [b"data: " + b"x" * 101],
    [b"data: " + b"x" * 60 + b"\n", b"data: " + b"x" * 60 + b"\n"],
    [b"data: " + b"x" * 50] + [b"x" * 20] * 3,
])
def test_an_event_has_a_largest_size(pieces: list[bytes]) -> None:
    decoder = SseDecoder(most=100)
    with pytest.raises(BackendFailed, match="more than 100 bytes"):
        for piece in pieces:
            decoder.feed(piece)


def test_comments_may_go_on_for_ever() -> None:
    decoder = SseDecoder(most=100)
    for _ in range(1000):
        assert decoder.feed(b": still here\n") == []
    assert decoder.feed(b"data: at last\n\n") == [SseEvent("message", "at last")]


PLAIN = st.sampled_from(["data: one\n\n", "data: zwölf\n\n", "event: named\ndata: two\n\n", "data: \n\n", "data:\n\n"])
ODD = st.sampled_from([
    ": a comment\n\n", "id: 7\ndata: x\n\n", "data: a\ndata: b\n\n", "\n", "event: alone\n\n", "data: c\r\n\r\n",
])


@given(st.lists(st.one_of(PLAIN, PLAIN, ODD), max_size=12), st.lists(st.integers(0, 300), max_size=6))
def test_what_is_usual_is_read_no_other_way_than_what_is_not(told: list[str], places: list[int]) -> None:
    stream = "".join(told).encode()
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert read(*pieces) == read(*(stream[at:at + 1] for at in range(len(stream))))
