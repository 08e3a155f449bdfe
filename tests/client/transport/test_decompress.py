"""What was compressed is what it was, wherever it is cut; what is broken, or far too much, is noticed."""

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.client.transport.decompress import MAX_STEP_BYTES, Decompressor, decompressor_for
from gateway.errors import BackendFailed, ConnectionLost, GatewayError

TALK = b"data: one\n\ndata: zw\xc3\xb6lf\n\n" * 20


def bare(said: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(said) + packer.flush()


PACKED = {
    "gzip": gzip.compress(TALK, mtime=0), "x-gzip": gzip.compress(TALK[:9], mtime=0) + gzip.compress(TALK[9:], mtime=0),
    " GZIP ": gzip.compress(TALK, mtime=0) + b"\0" * 30, "deflate": zlib.compress(TALK), "Deflate": bare(TALK),
}
"""In one piece, in two, with something after it; and of the other kind, as it should be and as some have it."""


def unpacked(encoding: str, *pieces: bytes) -> bytes:
    body, said = decompressor_for("there", encoding), b""
    assert body is not None
    for piece in pieces:
        body.feed(piece)
        while more := body.take():
            said += more
    body.end()
    return said


@pytest.mark.parametrize("encoding", PACKED)
@given(places=st.lists(st.integers(0, 10_000), max_size=12))
def test_a_body_is_the_same_wherever_it_is_cut(encoding: str, places: list[int]) -> None:
    packed = PACKED[encoding]
    edges = [0, *sorted({place % len(packed) for place in places}), len(packed)]
    assert unpacked(encoding, *(packed[start:end] for start, end in pairwise(edges) if end > start)) == TALK


@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_byte_by_byte(encoding: str) -> None:
    packed = PACKED[encoding]
    assert unpacked(encoding, *(packed[at:at + 1] for at in range(len(packed)))) == TALK


@pytest.mark.parametrize("encoding", PACKED)
def test_every_part_is_there_however_little_is_taken_at_a_time(encoding: str) -> None:
    body, said = decompressor_for("there", encoding), b""
    assert body is not None
    body.feed(PACKED[encoding])
    while more := body.take(7):
        assert len(more) <= 7
        said += more
    body.end()
    assert said == TALK


def test_a_body_that_grows_past_all_measure_is_had_in_pieces() -> None:
    body = Decompressor("there", "gzip")
    body.feed(gzip.compress(b"\0" * 20 * MAX_STEP_BYTES))
    assert [len(body.take()) for _ in range(21)] == [*[MAX_STEP_BYTES] * 20, 0]
    body.end()


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_an_end_that_is_missing_is_missed(encoding: str) -> None:
    assert unpacked(encoding) == b"", "nothing at all is a body, too"
    for cut in (1, len(PACKED[encoding]) // 2, len(PACKED[encoding]) - 1):
        with pytest.raises(ConnectionLost, match="its compressed data are incomplete"):
            unpacked(encoding, PACKED[encoding][:cut])


@pytest.mark.parametrize("packed", [
    b"this is no gzip at all", PACKED["gzip"][:-6] + b"wrong!", PACKED["gzip"] * 2 + b"\x1fx!",
], ids=["no gzip", "a wrong sum", "more that is none"])
def test_what_cannot_be_read(packed: bytes) -> None:
    with pytest.raises(GatewayError, match="there broke"):
        unpacked("gzip", packed)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_an_encoding_that_nobody_asked_for(encoding: str) -> None:
    body = decompressor_for("there", encoding)
    assert body is not None and body.take() == b""
    body.end()
    with pytest.raises(BackendFailed, match=f"'{encoding}', which was not asked for"):
        body.feed(b"x")


@pytest.mark.parametrize("encoding", ["", "identity", " Identity"])
def test_what_is_not_compressed_is_read_as_it_is(encoding: str) -> None:
    assert decompressor_for("there", encoding) is None
