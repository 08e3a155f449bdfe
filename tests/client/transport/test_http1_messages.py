"""One request as bytes: it is always one, and it says who is asked and by whom."""

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from gateway.client import HttpClient
from gateway.client.transport.http1_messages import (
    MAX_STEP_BYTES,
    Decompressor,
    decompressor_for,
    default_headers,
    encode_request,
    normalize_headers,
)
from gateway.errors import BackendFailed, ConnectionLost, GatewayError

HERE = URL("http://example.com/")


@pytest.mark.parametrize(("url", "host"), [
    ("http://example.com/x", "example.com"), ("http://example.com:80/x", "example.com"),
    ("https://example.com:80/x", "example.com:80"), ("http://[::1]:8080/x", "[::1]:8080"), ("http://[::1]/", "[::1]"),
    ("http://b\u00fccher.example/x", "xn--bcher-kva.example"), ("http://me:secret@example.com/", "example.com"),
])
def test_which_host_is_named(url: str, host: str) -> None:
    assert b"\r\nhost: %b\r\n" % host.encode() in encode_request("GET", URL(url), None, default_headers(URL(url)))


def test_a_name_in_the_address_is_sent_as_such() -> None:
    url = URL("http://ann:s%3Acret@example.com/")
    request = encode_request("GET", url, None, default_headers(url))
    assert b"authorization: Basic YW5uOnM6Y3JldA==\r\n" in request and b"ann" not in request


@pytest.mark.parametrize(("method", "body", "end"), [
    ("GET", None, b"\r\n\r\n"), ("POST", None, b"content-length: 0\r\n\r\n"),
    ("DELETE", None, b"content-length: 0\r\n\r\n"),
    ("POST", {"ü": 1}, b'content-type: application/json\r\ncontent-length: 8\r\n\r\n{"\xc3\xbc":1}'),
    ("GET", [], b"content-length: 2\r\n\r\n[]"),
])
def test_how_long_a_body_is(method: str, body: object, end: bytes) -> None:
    request = encode_request(method, HERE, body, {"x": "y"})
    assert request.startswith(method.encode() + b" / HTTP/1.1\r\nx: y\r\n") and request.endswith(end)
    assert (b"content-length" in request) is (b"content-length" in end)


@pytest.mark.parametrize("headers", [
    {"X-A": "1\r\nX-B: 2"}, {"X-A": "1\nX-B: 2"}, {"X-A": "1\r"}, {"X-A": "\0"}, {"X-A": "a\x0bb"}, {"X-A": "\x7f"},
    {"X-A": "\ud800"}, {"X-A\n": "1"}, {"X-A: 1\r\nX-B": "2"}, {"X A": "1"}, {"": "1"}, {"X-Ü": "1"},
])
def test_a_header_is_one_line(headers: dict[str, str]) -> None:
    with pytest.raises(BackendFailed, match="line break"):
        normalize_headers(headers)
    with pytest.raises(BackendFailed, match="line break"):
        HttpClient("http://example.com", headers=headers)


def test_what_is_no_ascii_is_sent_all_the_same() -> None:
    headers = normalize_headers({"X-Who": "Zoë \t!"})
    assert headers == {"x-who": "Zoë \t!"}
    assert b"x-who: Zo\xc3\xab \t!\r\n" in encode_request("GET", HERE, None, headers)


@pytest.mark.parametrize("path", ["/a\r\nX-B: 2", "/a b", "/a\0b", "/zwölf", "/a?b#c", "/%0d%0a"])
def test_a_path_is_one_word(path: str) -> None:
    request = encode_request("GET", HttpClient("http://example.com/v1").url_for(path), None, {})
    line, end = request.split(b"\r\n", 1)
    assert end == b"\r\n" and line.startswith(b"GET /v1/") and line.count(b" ") == 2 and line.isascii()


@pytest.mark.parametrize("path", ["/a\r\nX-B: 2", "/a b", "/zwölf", "/a\x7f"])
def test_a_path_that_nobody_has_made_fit_is_refused(path: str) -> None:
    with pytest.raises(BackendFailed, match="line break"):
        encode_request("GET", HERE.with_path(path, encoded=True), None, {})


@given(st.text(), st.text())
def test_whatever_is_asked_for_it_is_one_request(path: str, value: str) -> None:
    upstream = HttpClient("http://example.com/v1")
    try:
        request = encode_request(
            "GET", upstream.url_for(f"/{path}").update_query({"q": value}), None, normalize_headers({"X-A": value})
        )
    except (BackendFailed, ValueError):
        return  # a surrogate is no character
    assert request.count(b"\r\n") == 3 and request.count(b"\n") == 3 and request.count(b"\r") == 3


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
