"""One answer of JSON: read whole, however it was sent, and asked for once more only where that does no harm."""

import asyncio
import gzip
import zlib

import pytest

from gateway.client import HttpClient
from gateway.client.transport import http_client
from gateway.client.transport.http1_messages import MAX_STEP_BYTES, Decompressor
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, Overloaded, RateLimited
from gateway.ports.remote import Timeouts
from tests.support.client.byte_server import chunk, head, raw, says, serving
from tests.support.client.counting_server import LOOPS, Make, answer, counting_server, request, run

ONCE = Timeouts(attempts=1)
BODY = b'{"a": "\xc3\xbc"}'
ZIPPED = gzip.compress(BODY, mtime=0)
EARLY = b"HTTP/1.1 103 Early Hints\r\nContent-Encoding: gzip\r\n\r\n"


async def test_json_is_asked_for_and_read() -> None:
    async with serving(says(b'{"a": 1}'), says(b""), says(b"<html>", kind="text/html")) as server:
        upstream = HttpClient(server.url)
        assert await upstream.json("GET", "/", query={"q": "1"}) == {"a": 1}
        assert await upstream.json("POST", "/", {"b": 2}) is None
        with pytest.raises(BackendFailed, match="not JSON"):
            await upstream.json("GET", "/")
        await upstream.close()
    assert server.asked[0].path == "/?q=1"


async def test_only_a_get_is_asked_again_for_json() -> None:
    async with serving(says(b"", 503, Retry_After="0"), says(b"1")) as server:
        upstream = HttpClient(server.url)
        with pytest.raises(Overloaded):
            await upstream.json("POST", "/", {})
        await upstream.close()
    async with serving(says(b"", 503, Retry_After="0"), says(b"1")) as server:
        upstream = HttpClient(server.url)
        assert await upstream.json("GET", "/") == 1
        await upstream.close()


# -- however it was sent ----------------------------------------------------------------------------------------------

ANSWERS = {
    "with its length": answer(BODY),
    "without": b"HTTP/1.1 200 OK\r\n\r\n" + BODY,
    "by HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "announced": b"HTTP/1.1 100 Continue\r\n\r\n" + EARLY + answer(BODY),
    "in chunks with more": head() + b"3;x=y\r\n" + BODY[:3] + b"\r\n" + chunk(BODY[3:]) + b"0\r\nX-Sum: 1\r\n\r\n",
    "compressed": answer(ZIPPED, Content_Encoding="gzip"),
    "compressed, without length": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + ZIPPED,
    "deflated": answer(zlib.compress(BODY), Content_Encoding="deflate"),
    "deflated as some do it": answer(zlib.compress(BODY)[2:-4], Content_Encoding="deflate"),
}
CUT = [name for name in ANSWERS if name not in ("without", "by HTTP/1.0")]


@LOOPS
@pytest.mark.parametrize("shape", ANSWERS)
def test_an_answer_of_any_shape(make: Make, shape: str) -> None:
    async def work() -> None:
        async with serving(raw(ANSWERS[shape])) as server:
            upstream = HttpClient(server.url, timeouts=ONCE)
            assert await upstream.json("POST", "/") == {"a": "ü"}
            await upstream.close()

    run(make, work())


@pytest.mark.parametrize("shape", CUT)
async def test_an_answer_that_is_cut_is_no_answer(shape: str) -> None:
    whole = ANSWERS[shape]
    for cut in range(0, len(whole), 7):
        async with serving(raw(whole[:cut])) as server:
            upstream = HttpClient(server.url, timeouts=ONCE)
            with pytest.raises(ConnectionLost):
                await upstream.json("POST", "/")
            await upstream.close()


@pytest.mark.parametrize("status", [204, 205])
async def test_nothing_was_said(status: int) -> None:
    said = b"HTTP/1.1 %d Nothing\r\nContent-Length: 0\r\n\r\n" % status
    async with serving(raw(said)) as server:
        upstream = HttpClient(server.url)
        assert await upstream.json("DELETE", "/") is None
        await upstream.close()


@pytest.mark.parametrize(("status", "kind", "words"), [
    (200, BackendFailed, "answered in the encoding 'br', which was not asked for"),
    (503, Overloaded, "answered 503"), (429, RateLimited, "answered 429"), (401, BackendFailed, "answered 401"),
])
async def test_what_was_not_asked_for_does_not_hide_a_refusal(
    status: int, kind: type[GatewayError], words: str,
) -> None:
    async with serving(says(b"\x0b\x02\x80", status, Content_Encoding="br")) as server:
        upstream = HttpClient(server.url)
        with pytest.raises(kind, match=words):
            await upstream.json("POST", "/")
        await upstream.close()
    assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BODY_BYTES", 5_000_000)
    await _refuses(answer(b" " * 5_000_001))


async def test_what_is_compressed_is_not_unpacked_beyond_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BODY_BYTES", 5_000_000)
    pieces, take = list[int](), Decompressor.take

    def counted(unpacking: Decompressor, most: int = MAX_STEP_BYTES) -> bytes:
        piece = take(unpacking, most)
        pieces.append(len(piece))
        return piece

    monkeypatch.setattr(Decompressor, "take", counted)
    await _refuses(answer(gzip.compress(b"[" + b" " * 20_000_000 + b"]", 1), Content_Encoding="gzip"))
    assert max(pieces) <= MAX_STEP_BYTES
    assert 5_000_000 < sum(pieces) <= 5_000_000 + MAX_STEP_BYTES


async def _refuses(said: bytes) -> None:
    async with serving(raw(said)) as server:
        upstream = HttpClient(server.url)
        with pytest.raises(BackendFailed, match="more than 5000000 bytes"):
            await upstream.json("GET", "/")
        await upstream.close()


# -- never led elsewhere ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with serving(says(b"1")) as other, serving(says(b"", status, Location=f"{other.url}/x")) as server:
        upstream = HttpClient(server.url)
        with pytest.raises(BackendFailed, match=f"answered {status} with a redirect"):
            await upstream.json("GET", "/")
        await upstream.close()
    assert (len(server.asked), other.connections) == (1, 0)


async def test_who_we_are_is_told_and_a_cookie_is_not_kept() -> None:
    async with serving(says(b"1", Set_Cookie="who=me; Path=/")) as server:
        upstream = HttpClient(server.url.replace("http://", "http://me:s%40cret@"))
        for _ in range(2):
            assert await upstream.json("GET", "/") == 1
        assert "s@cret" not in upstream.name and "s%40cret" not in upstream.name
        await upstream.close()
    assert [asked.headers["authorization"] for asked in server.asked] == ["Basic bWU6c0BjcmV0"] * 2
    assert not any("cookie" in asked.headers for asked in server.asked)


# -- a wire that was used before --------------------------------------------------------------------------------------

@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_what_does_no_harm_is_asked_again(method: str) -> None:
    async with serving(says(b"1"), raw(), says(b"2")) as server:
        upstream = HttpClient(server.url, timeouts=ONCE)
        assert [await upstream.json(method, "/"), await upstream.json(method, "/")] == [1, 2]
        await upstream.close()
    assert (len(server.asked), server.connections) == (3, 2)


async def test_what_may_do_harm_is_not() -> None:
    async with serving(says(b"1"), raw(), says(b"2")) as server:
        upstream = HttpClient(server.url)
        assert await upstream.json("POST", "/", {}) == 1
        with pytest.raises(ConnectionLost):
            await upstream.json("POST", "/", {})
        await upstream.close()
    assert len(server.asked) == 2


# -- an answer before all was asked -----------------------------------------------------------------------------------

@LOOPS
@pytest.mark.parametrize("then", ["stays", "closes", "half closes"])
def test_a_refusal_in_the_middle_of_a_request(make: Make, then: str) -> None:
    """It is heard, and the wire is not used again: the rest of the request would be the beginning of the next."""
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b'{"error": "too much"}', 413))
        await writer.drain()
        if then == "half closes":
            writer.write_eof()
        if then == "closes":
            await reader.read(1_000_000)
            writer.close()

    async def work() -> None:
        async with counting_server(talk) as server:
            upstream = HttpClient(server.url)
            for asked in (1, 2):
                with pytest.raises(BackendFailed, match="answered 413: too much"):
                    await upstream.json("POST", "/", "x" * 30_000_000)
                await server.all_gone()
                assert server.connections == asked
            await upstream.close()

    run(make, work())


@LOOPS
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_server_that_has_nothing_more_to_say(make: Make, is_whole: bool) -> None:
    """It still listens; nobody speaks to it."""
    said = ANSWERS["with its length" if is_whole else "in chunks with more"]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(said if is_whole else said[:-9])
        writer.write_eof()

    async def work() -> None:
        async with counting_server(talk) as server:
            upstream = HttpClient(server.url)
            if is_whole:
                assert await upstream.json("POST", "/") == {"a": "ü"}
            else:
                with pytest.raises(ConnectionLost):
                    await upstream.json("POST", "/")
            await server.all_gone()
            await upstream.close()

    run(make, work())
