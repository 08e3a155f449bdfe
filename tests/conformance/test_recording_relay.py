"""The relay passes on what it sees, byte for byte and at once, and writes it down line by line."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from yarl import URL

from conformance.kit.secrets import Redactor
from conformance.offline.jsonl import read_jsonl
from conformance.offline.recording import Ending, Recording
from conformance.recording.recorder import Recorder
from conformance.recording.relay import relaying

ODD = [b": hi\r\n\r\n", b"event: a\rdata: 1\r\r", b"data: \xe4\xb8", b"\xad\n\n", b"data: not ended"]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[URL]:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield URL(f"http://127.0.0.1:{runner.addresses[0][1]}/base")
    finally:
        await runner.cleanup()


@asynccontextmanager
async def proxied(handler: Handler, path: Path) -> AsyncIterator[tuple[URL, aiohttp.ClientSession]]:
    """A server, the relay before it, and a client that is pointed at the relay."""
    async with serving(handler) as target:
        with path.open("wb") as file:
            recorder = Recorder(file, "aap", target, Redactor())
            async with (
                relaying(target, recorder, "127.0.0.1", 0) as address,
                aiohttp.ClientSession(auto_decompress=False) as session,
            ):
                yield address, session
            recorder.stopped()


def recording(path: Path) -> Recording:
    return read_jsonl(path)


async def raw(address: URL, request: bytes) -> bytes:
    """All the bytes that come back to a request that asks for the connection to be closed."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(request)
    async with asyncio.timeout(30):
        found = await reader.read(-1)
    writer.close()
    return found


async def test_an_event_stream_passes_byte_for_byte_and_at_once(tmp_path: Path) -> None:
    going_on = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Odd": "a, b"})
        await response.prepare(request)
        for place, piece in enumerate(ODD):
            if place == 1:
                await asyncio.wait_for(going_on.wait(), 5)  # the first piece must have arrived by then
            await response.write(piece)
            await asyncio.sleep(0)
        return response

    path = tmp_path / "a.jsonl"
    async with proxied(handler, path) as (address, session), session.get(address / "stream") as answer:
        assert await answer.content.readany() == ODD[0]
        going_on.set()
        rest = b"".join([piece async for piece in answer.content.iter_any()])
        assert (answer.status, answer.headers["X-Odd"]) == (200, "a, b")
    assert ODD[0] + rest == b"".join(ODD)
    (item,) = recording(path).exchanges
    assert item.reply.body == b"".join(ODD)
    assert [told.event.data for told in item.events] == ["1", "中"]
    assert item.ending is Ending.WHOLE


async def test_answers_keep_their_status_and_headers(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-Seen", f"{request.method} {request.raw_path}")]
        response = web.Response(status=418, reason="Teapot", body=body[::-1], content_type="application/x-odd")
        for name, value in headers:
            response.headers.add(name, value)
        return response

    path = tmp_path / "a.jsonl"
    async with proxied(handler, path) as (address, _), serving(handler) as direct:
        question = b"POST /base/a%2Fb?q=%20x&r HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
        through, straight = await raw(address, question), await raw(direct, question)
    assert _sorted(through) == _sorted(straight)
    (item,) = recording(path).exchanges
    assert (item.status, item.body, item.reply.body) == (418, b"abc", b"cba")
    assert item.reply_headers.getall("Set-Cookie") == ["a=[redacted-1]", "b=[redacted-2]"]  # type: ignore[attr-defined]


def _sorted(answer: bytes) -> tuple[bytes, list[bytes], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    return first, sorted(line for line in headers if not line.startswith(b"Date")), body


async def test_no_header_is_made_up(tmp_path: Path) -> None:
    async def bare(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nX-Only: me\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(bare, "127.0.0.1", 0)
    target = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    with (tmp_path / "a.jsonl").open("wb") as file:
        async with relaying(target, Recorder(file, "aap", target, Redactor()), "127.0.0.1", 0) as address:
            answer = await raw(address, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    server.close()
    assert answer == b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nX-Only: me\r\nConnection: close\r\n\r\nok"


async def test_a_packed_answer_passes_packed_and_is_recorded_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"token": "unpacked-secret-1"}')

    async def handler(request: web.Request) -> web.StreamResponse:
        encoding = request.query["with"]
        return web.Response(body=packed, headers={"Content-Encoding": encoding, "Content-Type": "application/json"})

    path = tmp_path / "a.jsonl"
    async with proxied(handler, path) as (address, session):
        for encoding in ("gzip", "br"):
            async with session.get(address.with_query({"with": encoding})) as answer:
                assert await answer.read() == packed
    known, unknown = recording(path).exchanges
    assert known.json == {"token": "[redacted-1]"}
    assert (unknown.reply.body, unknown.is_short) == (b"", True)


async def test_a_websocket_passes_both_ways(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("chat",))
        await socket.prepare(request)
        async for message in socket:
            if message.data == "bye":
                await socket.close(code=4001, message=b"as you wish")
            elif message.type is aiohttp.WSMsgType.TEXT:
                await socket.send_str(message.data[::-1])
            else:
                await socket.send_bytes(message.data[::-1])
        return socket

    path, texts = tmp_path / "a.jsonl", ["", "plain", "中文 😀 \u0000", "x" * 200_000]
    async with (
        proxied(handler, path) as (address, session),
        session.ws_connect(address / "ws", protocols=("chat",), max_msg_size=0) as socket,
    ):
        for text in texts:
            await socket.send_str(text)
            assert await socket.receive_str() == text[::-1]
        await socket.send_bytes(b"\xff\x00")
        assert await socket.receive_bytes() == b"\x00\xff"
        await socket.send_str("bye")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert (socket.close_code, socket.protocol) == (4001, "chat")
    (item,) = recording(path).exchanges
    told = [(frame.is_sent, frame.text) for frame in item.frames]
    assert told[:8] == [pair for text in texts for pair in ((True, text), (False, text[::-1]))]
    assert told[8:] == [(True, None), (False, None), (True, "bye")]
    assert (item.status, item.close_code, item.ending) == (101, 4001, Ending.WHOLE)


async def test_a_declined_handshake_keeps_its_words(tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": "no key"}, status=401)

    path = tmp_path / "a.jsonl"
    upgrade = b"GET /base/ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nConnection: close\r\n\r\n"
    async with proxied(handler, path) as (address, _):
        answer = await raw(address, upgrade + key)
    assert answer.startswith(b"HTTP/1.1 401") and answer.endswith(b'{"error": "no key"}')
    (item,) = recording(path).exchanges
    assert (item.status, item.json) == (401, {"error": "no key"})


async def test_a_server_that_is_not_there_is_a_502_and_no_answer(tmp_path: Path) -> None:
    target, path = URL("http://127.0.0.1:9/"), tmp_path / "a.jsonl"
    with path.open("wb") as file:
        recorder = Recorder(file, "aap", target, Redactor())
        async with (
            relaying(target, recorder, "127.0.0.1", 0) as address,
            aiohttp.ClientSession() as session,
            session.get(address) as answer,
        ):
            assert answer.status == 502
            assert "gave no answer" in await answer.text()
    (item,) = recording(path).exchanges
    assert (item.status, item.ending) == (None, Ending.REFUSED)


async def test_a_cut_answer_is_cut_for_the_client_too(tmp_path: Path) -> None:
    heard = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        await asyncio.wait_for(heard.wait(), 5)
        assert request.transport is not None
        request.transport.close()
        return response

    path = tmp_path / "a.jsonl"
    async with proxied(handler, path) as (address, session):
        async with session.get(address) as answer:
            assert await answer.content.readany() == b"data: 1\n\n"
            heard.set()
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()
        async with session.get(address) as again:
            assert again.status == 200  # the relay goes on
    first, _ = recording(path).exchanges
    assert (first.ending, len(first.events)) == (Ending.CUT, 1)


async def test_a_client_that_leaves_is_noted_and_the_server_told(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": beat\n\n")
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 5)
        except asyncio.CancelledError:
            left.set()
            raise
        return response

    path = tmp_path / "a.jsonl"
    async with proxied(handler, path) as (address, session):
        async with session.get(address) as answer:
            await answer.content.readany()
        async with asyncio.timeout(30):
            await left.wait()
    (item,) = recording(path).exchanges
    assert item.ending is Ending.LEFT
    assert item.comments


async def test_what_is_too_large_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.recording.recorder.LARGEST", 10)

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(body=(await request.read()) * 2)

    path = tmp_path / "a.jsonl"
    async with proxied(handler, path) as (address, session), session.post(address, data=b"0123456789ab") as answer:
        assert await answer.read() == b"0123456789ab" * 2
    (item,) = recording(path).exchanges
    assert (item.body, item.reply.body, item.is_short) == (b"0123456789", b"0123456789", True)


async def test_every_line_is_in_the_file_when_it_happens(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    path = tmp_path / "a.jsonl"

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append([orjson.loads(line)["type"] for line in path.read_bytes().splitlines()])
        return web.Response(text="ok")

    async with proxied(handler, path) as (address, session), session.get(address) as answer:
        await answer.read()
    assert seen == [["recording", "request"]]
    lines: list[Any] = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["type"] for line in lines] == ["recording", "request", "response", "body", "end", "stopped"]
    assert lines[-1] == {"type": "stopped", "exchanges": 1, "messages": 0}
