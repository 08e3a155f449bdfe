"""One answer, whatever its shape: which bytes are its head and its body, when it is whole, and who may ask again."""

import gc
import weakref

import pytest

from gateway.client.transport.http1_messages import PARSE_ERRORS, ResponseParser

BODY = b"Content-Length: 2\r\n\r\nhi"
OK = b"HTTP/1.1 200 OK\r\n" + BODY


def read(*pieces: bytes) -> ResponseParser:
    answer = ResponseParser()
    for piece in pieces:
        answer.feed(piece)
    return answer


def test_an_answer_and_what_it_tells() -> None:
    answer = read(b"HTTP/1.1 404 Not There\r\nX-Who: M\xfcller\r\nContent-Type: Text/Plain; charset=x\r\n" + BODY)
    assert (answer.status, b"".join(answer.parts), answer.content_type) == (404, b"hi", "text/plain")
    assert answer.headers["x-who"] == "Müller"
    assert answer.has_head and answer.is_complete and answer.keep_alive and not answer.ends_with_connection


def test_an_answer_without_a_type_is_of_no_known_one() -> None:
    assert read(OK).content_type == "application/octet-stream"


# -- before the answer ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("early", [
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nContent-Encoding: gzip\r\n\r\n",
    b"HTTP/1.1 102 Processing\r\n\r\n" * 3 + b"HTTP/1.1 103 Early Hints\r\nContent-Type: a/b\r\n\r\n",
], ids=["100", "103", "several"])
def test_what_only_announces_an_answer_is_none_of_it(early: bytes) -> None:
    answer = read(early)
    assert (answer.status, answer.headers, answer.has_head, answer.is_complete) == (0, {}, False, False)
    answer.feed(OK)
    assert (answer.status, answer.headers, answer.parts) == (200, {"content-length": "2"}, [b"hi"])
    assert answer.is_complete and answer.keep_alive


def test_nobody_asked_for_another_protocol() -> None:
    with pytest.raises(PARSE_ERRORS):
        read(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x00")
    answer = read(b"HTTP/1.1 200 OK\r\nUpgrade: h2,h2c\r\nConnection: Upgrade\r\n" + BODY)
    assert answer.is_complete and answer.parts == [b"hi"], "an offer is no more than that"


# -- where it ends ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("more", [b"", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_some_answers_have_no_body_whatever_they_say(status: int, more: bytes) -> None:
    answer = read(b"HTTP/1.1 %d Whatever\r\n%b\r\n" % (status, more))
    assert (answer.status, answer.parts, answer.is_complete) == (status, [], True)


@pytest.mark.parametrize("head", [
    b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
])
def test_some_answers_end_with_their_connection(head: bytes) -> None:
    answer = read(head, b"he", b"llo")
    assert answer.parts == [b"he", b"llo"]
    assert answer.ends_with_connection and not answer.is_complete and not answer.keep_alive


@pytest.mark.parametrize(("version", "connection", "stays"), [
    ("1.1", "", True), ("1.1", "Connection: close\r\n", False), ("1.1", "Connection: Keep-Alive\r\n", True),
    ("1.0", "", False), ("1.0", "Connection: keep-alive\r\n", True),
])
def test_who_stays(version: str, connection: str, stays: bool) -> None:
    answer = read(f"HTTP/{version} 200 OK\r\n{connection}".encode() + BODY)
    assert (answer.is_complete, answer.keep_alive) == (True, stays)


def test_what_comes_with_chunks_and_after_them_is_not_heeded() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: a/b\r\n\r\n"
    trailer = b"0;last\r\nContent-Type: c/d\r\nX-Sum: 7\r\n\r\n"
    answer = read(head, b'3;name="value";x\r\none\r\n4;q=1\r\ntwo!\r\n', trailer)
    assert (b"".join(answer.parts), answer.content_type, answer.is_complete, answer.keep_alive) == (
        b"onetwo!",
        "a/b",
        True,
        True,
    )
    assert set(answer.headers) == {"transfer-encoding", "content-type"}


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9" + b"9" * 30 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-A: 1\rX-B: 2\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
], ids=["two lengths", "a length and chunks", "less than nothing", "too long", "half a line's end", "status", "chunk"])
def test_an_answer_that_can_be_read_in_two_ways_is_not_read(answer: bytes) -> None:
    with pytest.raises(PARSE_ERRORS):
        read(answer)


def test_a_second_answer_is_not_read() -> None:
    answer = ResponseParser()
    with pytest.raises(PARSE_ERRORS):
        answer.feed(OK + OK)
    assert (answer.is_complete, answer.parts) == (True, [b"hi"])


def test_who_is_let_go_is_forgotten_at_once() -> None:
    answer = read(OK)
    known = weakref.ref(answer)
    gc.disable()
    try:
        answer.release()
        answer.feed(b"whatever")
        assert (answer.status, answer.parts) == (200, [])
        del answer
        assert known() is None
    finally:
        gc.enable()
