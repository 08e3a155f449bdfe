"""One upstream over HTTP: what it says is heard once, its failures are told in our words, our key never comes back."""

import asyncio
import socket
import ssl
from typing import Any

import pytest
import trustme

import gateway.model as m
from gateway.client import HttpClient, SseEvent
from gateway.client.redaction import MAX_QUOTED
from gateway.client.transport.sse_decoder import MAX_EVENT_BYTES
from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.ports.remote import RemoteAddress, Timeouts
from tests.support.client.byte_server import END, Answer, Server, chunk, hangs, head, raw, says, serving, stream
from tests.support.client.event_streams import read_all

KEY = "sk-a-key-that-nobody-may-see"
ONCE = Timeouts(attempts=1)


async def heard(server: Server, patience: Timeouts = ONCE, **given: Any) -> list[SseEvent]:
    upstream = HttpClient(server.url, timeouts=patience, secrets=(KEY,), **given)
    try:
        async with asyncio.timeout(30):
            return await read_all(upstream.stream("POST", "/talk", {"hello": "you"}))
    finally:
        await upstream.close()


async def failure(*answers: Answer, patience: Timeouts = ONCE) -> GatewayError:
    async with serving(*answers) as server:
        with pytest.raises(GatewayError) as caught:
            await heard(server, patience)
        return caught.value


# -- what is asked and heard ------------------------------------------------------------------------------------------

async def test_a_request_goes_where_it_should_and_its_events_are_heard() -> None:
    async with serving(stream(b"data: 1\n\nda", b"ta: 2\n\n")) as server:
        upstream = HttpClient(f"{server.url}/v1/?tenant=7", headers={"X-Mine": "yes"})
        events = await read_all(upstream.stream("POST", "/talk", {"ü": 1}, headers={"X-Too": "1"}))
        await upstream.close()
    [asked] = server.asked
    assert [event.data for event in events] == ["1", "2"]
    assert (asked.method, asked.path, asked.json) == ("POST", "/v1/talk?tenant=7", {"ü": 1})
    assert asked.headers["x-mine"] == "yes" and asked.headers["x-too"] == "1"
    assert asked.headers["accept"] == "text/event-stream" and asked.headers["content-type"] == "application/json"


async def test_a_connection_is_used_again() -> None:
    async with serving(stream(b"data: 1\n\n")) as server:
        upstream = HttpClient(server.url)
        for _ in range(3):
            assert [event.data for event in await read_all(upstream.stream("POST", "/"))] == ["1"]
        await upstream.close()
    assert (len(server.asked), server.connections) == (3, 1)


async def test_who_leaves_early_closes_the_connection() -> None:
    server = Server()
    async with serving(hangs(server, head(), chunk(b"data: 1\n\n"))) as served:
        upstream = HttpClient(served.url)
        async with upstream.stream("POST", "/") as events:
            assert [event.data for event in await events.read()] == ["1"]
        async with asyncio.timeout(60):
            await server.gone.wait()
        await upstream.close()


# -- failures in our words --------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("status", "kind"), [
    (400, BackendFailed), (401, BackendFailed), (404, BackendFailed), (429, RateLimited), (500, Overloaded),
    (503, Overloaded), (529, Overloaded),
])
async def test_a_status_becomes_a_fault(status: int, kind: type[GatewayError]) -> None:
    error = await failure(says(b'{"error": {"message": "No\\nand no.", "type": "x"}}', status))
    assert type(error) is kind
    assert error.message.endswith(f" answered {status}: No and no.") and "/talk" not in error.message
    assert error.details == {"upstream_status": status}


async def test_a_complaint_that_never_ends_still_has_its_status() -> None:
    server = Server()
    error = await failure(hangs(server, head(401), chunk(b"slow")), patience=Timeouts(attempts=1, idle=0.05))
    assert "answered 401: slow" in error.message
    error = await failure(says(b"x" * 1_000_000, 400))
    assert len(error.message) < MAX_QUOTED + 100


async def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = Server(url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(BackendFailed, match="cannot be reached") as caught:
            await heard(closed)
    assert caught.value.retryable


async def test_a_redirect_is_not_followed() -> None:
    async with serving(stream(b"data: gotcha\n\n")) as other, serving(
        says(b"", 307, Location=f"{other.url}/talk"),
    ) as server:
        with pytest.raises(BackendFailed, match="answered 307 with a redirect") as caught:
            await heard(server)
        assert f"it points to {other.url};" in caught.value.message and "/talk" not in caught.value.message
    assert (len(server.asked), other.asked, other.connections) == (1, [], 0)


async def test_a_certificate_that_does_not_verify() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with serving(stream(b"data: 1\n\n"), tls=context) as server:
        with pytest.raises(BackendFailed, match="certificate does not verify") as caught:
            await heard(server, Timeouts())
        assert (server.asked, caught.value.retryable) == ([], False)
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        assert [event.data for event in await heard(server, ssl=trusting)] == ["1"]


async def test_no_stream_at_all() -> None:
    error = await failure(says(b'{"error": "streaming is off"}'))
    assert "application/json, not with a stream of events: streaming is off" in error.message


@pytest.mark.parametrize("pieces", [
    [b"this is no HTTP\r\n\r\n"],
    [b""],
    [head(), chunk(b"data: 1\n\n")[:-4]],
    [head(), b"zz\r\nnot a chunk"],
])
async def test_a_broken_answer(pieces: list[bytes]) -> None:
    error = await failure(raw(*pieces))
    assert type(error).__name__ == "ConnectionLost" and error.code is m.FaultCode.BACKEND and error.retryable


@pytest.mark.parametrize(("before", "patience", "words"), [
    ([], Timeouts(attempts=1, first_byte=0.05), "sent nothing for"),
    ([head()], Timeouts(attempts=1, first_byte=0.05), "sent nothing for"),
    ([head(), chunk(b"data: 1\n\n")], Timeouts(attempts=1, idle=0.05), "sent nothing for"),
    ([head() + chunk(b"data: 1\n\n")], Timeouts(attempts=1, total=0.5), "longer than 0.5 seconds in all"),
], ids=["first byte", "first piece", "idle", "total"])
async def test_a_server_that_hangs(before: list[bytes], patience: Timeouts, words: str) -> None:
    hung = Server()
    async with serving(hangs(hung, *before)) as server:
        with pytest.raises(TimedOut, match=words):
            await heard(server, patience)
        async with asyncio.timeout(60):
            await hung.gone.wait()


async def test_a_line_of_a_hundred_megabytes_is_not_read() -> None:
    piece, sent = b"x" * 1_000_000, 0

    async def answer(writer: asyncio.StreamWriter, asked: Any) -> None:
        nonlocal sent
        writer.write(head() + chunk(b"data: "))
        for _ in range(100):
            writer.write(chunk(piece))
            await writer.drain()
            sent += len(piece)
        writer.write(END)

    async with serving(answer) as server:
        with pytest.raises(BackendFailed, match="more than"):
            await heard(server)
    assert sent <= MAX_EVENT_BYTES + 2 * len(piece), "nobody listens to the end"


async def test_events_that_are_no_text() -> None:
    assert "not UTF-8" in (await failure(stream(b"data: \xc3\x28\n\n"))).message


# -- trying again -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("first", [
    says(b"", 429, Retry_After="0"), says(b"", 503, Retry_After="0"), raw(b""), raw(head()),
], ids=["rate limited", "overloaded", "cut", "cut after the headers"])
async def test_tried_again_while_nothing_was_heard(first: Answer) -> None:
    async with serving(first, stream(b"data: 1\n\n")) as server:
        assert [event.data for event in await heard(server, Timeouts(attempts=2))] == ["1"]
    assert len(server.asked) == 2


@pytest.mark.parametrize("first", [
    stream(b"data: 1\n\n", ends=False), says(b"", 400), says(b"", 429, Retry_After="3600"),
], ids=["heard already", "our own mistake", "too long to wait"])
async def test_not_tried_again(first: Answer) -> None:
    async with serving(first, stream(b"data: 2\n\n")) as server:
        with pytest.raises(GatewayError):
            await heard(server, Timeouts(attempts=3))
    assert len(server.asked) == 1


async def test_not_tried_for_ever() -> None:
    async with serving(says(b"", 503, Retry_After="0")) as server:
        with pytest.raises(Overloaded):
            await heard(server, Timeouts(attempts=3))
    assert len(server.asked) == 3


async def test_how_long_to_wait_is_told() -> None:
    assert (await failure(says(b"", 429, Retry_After="33"))).details == {"upstream_status": 429, "retry_after": 33}


# -- secrets ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("body", [
    f'{{"error": {{"message": "Incorrect API key: {KEY}"}}}}'.encode(),
    f"Authorization: Bearer {KEY}".encode(),
    b" " * 7990 + KEY.encode(),
    b"x" * 495 + KEY.encode(),
])
async def test_a_key_that_is_repeated_is_not_passed_on(body: bytes) -> None:
    async def answer(writer: asyncio.StreamWriter, asked: Any) -> None:
        writer.write(head(401, "text/plain"))
        for at in range(0, len(body), 1000):
            writer.write(chunk(body[at:at + 1000]))
            await writer.drain()
        writer.write(END)

    error = await failure(answer)
    assert KEY[:6] not in error.message and KEY[:6] not in str(error.fault) + repr(error)


async def test_a_key_in_an_answer_is_blotted_out() -> None:
    async with serving(stream(f"data: {KEY} and {KEY}!\n\n".encode())) as server:
        assert [event.data for event in await heard(server)] == ["*** and ***!"]
    async with serving(says(f'{{"you": "{KEY}"}}'.encode())) as server:
        upstream = HttpClient(server.url, secrets=(KEY,))
        assert await upstream.json("GET", "/") == {"you": "***"}
        await upstream.close()


def test_a_name_has_no_password_and_no_path() -> None:
    assert HttpClient("https://me:secret@example.org:8443/v1?key=1").name == "https://example.org:8443"


def test_a_client_of_an_address_has_its_key_and_its_timeouts() -> None:
    address = RemoteAddress(url="http://there/api", key=KEY, patience=ONCE)
    client = HttpClient.at(address, headers={"Accept": "text/plain"})
    assert client.headers == {"Authorization": f"Bearer {KEY}", "Accept": "text/plain"}
    assert (str(client.url), client.timeouts, client.redactor.body(KEY)) == ("http://there/api", ONCE, "***")
    open_client = HttpClient.at(RemoteAddress(url="http://there"), url="http://there/socket.io/")
    assert (open_client.headers, str(open_client.url)) == ({}, "http://there/socket.io/")
