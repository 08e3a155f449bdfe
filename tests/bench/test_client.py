"""The load client reads answers right, however they are cut."""

import pytest

from bench.client import LoadResponse, dechunk
from bench.measure import BenchFailure

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PARTS = (b"event: a\n\n", b"event: b\ndata: {}\n\n", b"x" * 300)


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def fed(raw: bytes, size: int) -> tuple[LoadResponse, list[bool]]:
    """An answer that arrived in pieces of that size, at 0, 1, 2 … seconds; and after which piece it was complete."""
    answer = LoadResponse()
    pieces = [raw[at:at + size] for at in range(0, len(raw), size)]
    return answer, [answer.take(piece, float(number)) for number, piece in enumerate(pieces)]


def test_chunks_are_joined() -> None:
    assert dechunk(chunked(*PARTS)) == b"".join(PARTS)


def test_an_empty_body_is_a_last_chunk_alone() -> None:
    assert dechunk(b"0\r\n\r\n") == b""


@pytest.mark.parametrize("torn", [b"", b"5\r\nab", b"2\r\nabc\r\n0\r\n\r\n", b"zz\r\nab\r\n", chunked(*PARTS)[:-7]])
def test_a_torn_body_is_told(torn: bytes) -> None:
    with pytest.raises(BenchFailure):
        dechunk(torn)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 10_000])
def test_the_end_of_a_stream_is_seen_in_pieces_of_any_size(size: int) -> None:
    answer, complete = fed(HEAD + chunked(*PARTS), size)
    assert complete == [False] * (len(complete) - 1) + [True]
    assert (answer.status, answer.body()) == (200, b"".join(PARTS))


@pytest.mark.parametrize("size", [1, 4, 1_000])
def test_a_body_of_known_length_ends_there(size: int) -> None:
    answer, complete = fed(b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nabcd", size)
    assert complete == [False] * (len(complete) - 1) + [True]
    assert (answer.status, answer.body()) == (201, b"abcd")


def test_an_answer_without_a_body_is_complete_with_its_head() -> None:
    assert fed(b"HTTP/1.1 204 No Content\r\n\r\n", 1_000)[1] == [True]


def test_an_event_has_arrived_with_the_piece_that_completes_its_mark() -> None:
    raw = HEAD + chunked(b"event: a\n\n", b"event: a\n\n")
    answer, _ = fed(raw, 1)
    first = raw.index(b"event: a")
    second = raw.index(b"event: a", first + 1)
    assert answer.arrivals(b"event: a") == [first + 7.0, second + 7.0]
