"""The HTTP client: sends what it is told, reads what comes, bounds every wait and keeps a transcript."""

import asyncio
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from conformance.kit.expect import Failed, Unanswered
from conformance.kit.http import HttpClient
from conformance.kit.secrets import Redactor
from conformance.kit.transcript import Transcript

KEY = "a-bearer-key"


async def echo(request: web.Request) -> web.Response:
    body = await request.read()
    told = {"method": request.method, "body": body.hex(), "query": dict(request.query)}
    return web.json_response(told | {"headers": dict(request.headers)})


async def stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b"event: a\nda")
    await asyncio.sleep(0)
    await response.write(b"ta: 1\n\ndata: 2\n\n")
    match request.query.get("then"):
        case "cut":
            assert request.transport is not None
            request.transport.abort()
        case "hang":
            await asyncio.sleep(1)
    return response


async def hang(request: web.Request) -> web.Response:
    await asyncio.sleep(1)
    return web.Response()


async def flood(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(40):
        await response.write(b"x" * 1_000_000)
    return response


async def away(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "/echo"})


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    app = web.Application()
    app.router.add_route("*", "/echo", echo)
    app.router.add_get("/stream", stream)
    app.router.add_get("/hang", hang)
    app.router.add_get("/flood", flood)
    app.router.add_get("/away", away)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        yield HttpClient(session, str(server.make_url("")).rstrip("/"), Transcript(Redactor(key=KEY)), KEY, timeout=0.3)


async def test_json_is_sent_with_the_key(client: HttpClient) -> None:
    told = (await client.ask("POST", "/echo", {"a": 1}, query={"q": "x y"})).json()
    assert bytes.fromhex(told["body"]) == b'{"a":1}'
    assert told["headers"]["Content-Type"] == "application/json"
    assert told["headers"]["Authorization"] == f"Bearer {KEY}"
    assert told["query"] == {"q": "x y"}


async def test_any_bytes_and_any_content_type_can_be_sent(client: HttpClient) -> None:
    told = (await client.ask("POST", "/echo", body=b"\xff\x00{", content_type="text/odd", key=None)).json()
    assert told["body"] == "ff007b"
    assert told["headers"]["Content-Type"] == "text/odd"
    assert "Authorization" not in told["headers"]


async def test_another_key_can_be_sent(client: HttpClient) -> None:
    told = (await client.ask("GET", "/echo", key="wrong")).json()
    assert told["headers"]["Authorization"] == "Bearer wrong"


async def test_redirects_are_answers(client: HttpClient) -> None:
    assert (await client.ask("GET", "/away")).status == 302


async def test_a_stream_is_read_event_by_event(client: HttpClient) -> None:
    async with client.stream("GET", "/stream") as events:
        assert events.is_event_stream
        first, second = await events.next(), await events.next()
        assert first is not None
        assert second is not None
        assert [(first.event, first.data), (second.event, second.data)] == [("a", "1"), ("message", "2")]
        assert await events.next() is None


async def test_a_cut_stream_is_a_failure(client: HttpClient) -> None:
    with pytest.raises(Failed, match="end in good order; seen: it was cut"):
        await client.ask("GET", "/stream", query={"then": "cut"})


async def test_a_stream_that_stands_still_is_a_failure(client: HttpClient) -> None:
    with pytest.raises(Failed, match="nothing more came"):
        await client.ask("GET", "/stream", query={"then": "hang"})


async def test_a_server_that_hangs_is_unanswered(client: HttpClient) -> None:
    with pytest.raises(Unanswered, match=r"GET /hang within 0\.3 s; seen: none came"):
        await client.ask("GET", "/hang")


async def test_a_flood_is_dammed(client: HttpClient) -> None:
    client.timeout = 5
    with pytest.raises(Failed, match="more than 8388608 bytes"):
        await client.ask("GET", "/flood")


async def test_nobody_there_is_unanswered(unused_tcp_port_factory: Callable[[], int]) -> None:
    async with aiohttp.ClientSession() as session:
        client = HttpClient(session, f"http://127.0.0.1:{unused_tcp_port_factory()}", Transcript(), timeout=1)
        with pytest.raises(Unanswered, match="GET /meta"):
            await client.ask("GET", "/meta")


async def test_a_stream_keeps_the_bytes_it_was_made_of(client: HttpClient) -> None:
    async with client.stream("GET", "/stream") as found:
        await found.next()
        await found.next()
        assert await found.next() is None
        assert bytes(found.raw) == b"event: a\ndata: 1\n\ndata: 2\n\n"


async def test_headers_and_repeated_parameters_are_sent(client: HttpClient) -> None:
    reply = await client.ask("GET", "/echo", headers={"Last-Event-ID": "7"}, query=[("a[]", "1"), ("a[]", "2")])
    assert reply.json()["headers"]["Last-Event-ID"] == "7"
    assert reply.asked == "GET /echo?a[]=1&a[]=2"


async def test_a_large_body_arrives_whole(client: HttpClient) -> None:
    reply = await client.ask("POST", "/echo", body=b"x" * 700_000)
    assert reply.json()["body"] == (b"x" * 700_000).hex()


async def test_comments_can_be_waited_for_and_events_are_kept_meanwhile() -> None:
    async def talk(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n: heartbeat\n\n")
        await asyncio.sleep(1)
        return response

    app = web.Application()
    app.router.add_get("/talk", talk)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        client = HttpClient(session, str(server.make_url("")).rstrip("/"), Transcript(), None, 0.2)
        async with client.stream("GET", "/talk") as found:
            assert await found.comment() == "heartbeat"
            event = await found.next()
            assert event is not None
            assert event.data == "1"
            with pytest.raises(Failed, match=r"within 0\.05 s"):
                await found.comment(0.05)


async def test_the_transcript_has_both_sides_and_no_key(client: HttpClient) -> None:
    await client.ask("POST", "/echo", {"hello": "there"})
    await client.ask("GET", "/stream")
    told = str(client.transcript)
    assert "> POST /echo" in told
    assert '> {"hello":"there"}' in told
    assert "< 200 OK" in told
    assert "< event: a" in told
    assert "Bearer [redacted]" in told
    assert KEY not in told
