"""Whoever has shown no key gets nothing kept, nothing inflated, little time, and no more than a line of the journal."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, http_parser
from structlog.testing import capture_logs

from gateway.http import request
from gateway.http.socketio import SocketIOServer
from gateway.http.socketio.client import MAX_HANDSHAKE_PACKETS
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, serving, until

BOMB = gzip.compress(b"0" * 4_000_000)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    limits = {"max_unauthenticated": 100}
    async with serving(tmp_path, auth="keys", dialects=ALL_DIALECTS, limits=limits, log="memory") as served:
        yield served


async def key(served: Served) -> dict[str, str]:
    return {"Authorization": f"Bearer {await served.gateway.keys.add('ann')}"}


class Line:
    """A connection of somebody who does not speak HTTP as libraries do."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, *words: bytes) -> None:
        for word in words:
            self._writer.write(word)
            await self._writer.drain()

    def trickle(self, word: bytes) -> None:
        self._writer.write(word)

    async def some(self) -> bytes:
        return await self._reader.read(10_000)

    async def answer(self) -> bytes:
        """All that the server says until it hangs up."""
        try:
            return await self._reader.read()
        except ConnectionResetError:
            return b""

    @property
    def is_open(self) -> bool:
        return not self._reader.at_eof() and self._reader.exception() is None

    def close(self) -> None:
        self._writer.close()


async def line(served: Served) -> Line:
    return Line(*await asyncio.open_connection("127.0.0.1", served.port))


# -- Socket.IO --------------------------------------------------------------------------------------------------------

def transports(served: Served) -> Any:
    """The connections that the library of Socket.IO keeps."""
    return _server(served).eio.sockets


def _server(served: Served) -> SocketIOServer:
    owners = (getattr(route.handler, "__self__", None) for route in served.gateway.web.router.routes())
    return next(owner for owner in owners if isinstance(owner, SocketIOServer))


SOCKET = "/socket.io/?EIO=4&transport=websocket"
POLLING = "/socket.io/?EIO=4&transport=polling"


async def test_a_large_packet_before_the_key_cuts_the_connection(served: Served) -> None:
    async with served.http.ws_connect(served.url(SOCKET)) as ws:
        assert (await ws.receive()).data.startswith("0{")
        await ws.send_str("4" + "x" * 200_000)
        assert (await ws.receive()).type in (WSMsgType.CLOSED, WSMsgType.ERROR, WSMsgType.CLOSE)
    await until(lambda: not transports(served))


async def test_the_beginning_of_a_large_packet_is_not_waited_for(served: Served) -> None:
    stranger = await line(served)
    await stranger.send(
        f"GET {SOCKET} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode(),
    )
    await until(lambda: transports(served))
    await stranger.send(b"\x81\xff" + (29_000_000).to_bytes(8, "big") + b"mask", *[b"x" * 10_000] * 8)
    assert b"101 Switching Protocols" in await stranger.answer()
    await until(lambda: not transports(served))


@pytest.mark.parametrize("transport", ["websocket", "polling", "&transport=websocket"])
async def test_a_socket_in_the_place_of_polling_gets_no_more(served: Served, transport: str) -> None:
    async with served.http.get(served.url(POLLING)) as response:
        sid = (await response.text()).partition('"sid":"')[2].partition('"')[0]
    async with served.http.ws_connect(served.url(f"/socket.io/?EIO=4&transport={transport}&sid={sid}")) as ws:
        await ws.send_str("2probe")
        assert (await ws.receive()).data == "3probe"
        await ws.send_str("5")
        await ws.send_str("4" + "x" * 200_000)
        assert (await ws.receive()).type in (WSMsgType.CLOSED, WSMsgType.ERROR, WSMsgType.CLOSE)
    await until(lambda: not transports(served))


async def test_whoever_shows_no_key_in_time_is_cut_on_a_socket(served: Served) -> None:
    async with served.http.ws_connect(served.url(SOCKET)) as ws:
        await ws.receive()
        await ws.send_str('40{"token":"wrong"}')
        assert (await ws.receive()).data == '44{"message":"unknown key"}'
        began = asyncio.get_running_loop().time()
        assert (await ws.receive()).type in (WSMsgType.CLOSED, WSMsgType.ERROR)
        assert asyncio.get_running_loop().time() - began == pytest.approx(15, abs=1)
    assert not transports(served)


async def test_whoever_polls_and_shows_no_key_in_time_is_forgotten(served: Served) -> None:
    await served.http.get(served.url(POLLING))
    assert len(transports(served)) == 1
    await asyncio.sleep(16)
    assert not transports(served)


async def test_handshakes_that_nobody_finishes_give_way_to_others(served: Served) -> None:
    for _ in range(105):
        async with served.http.get(served.url(POLLING)) as response:
            assert response.status == 200
    await until(lambda: len(transports(served)) == 100)


async def test_packets_before_the_key_are_neither_read_nor_many(served: Served) -> None:
    async with served.http.ws_connect(served.url(SOCKET)) as ws:
        await ws.receive()
        for _ in range(MAX_HANDSHAKE_PACKETS + 1):
            await ws.send_str('451-["chat:send",{"_placeholder":true,"num":0}]')
        assert (await ws.receive()).type in (WSMsgType.CLOSED, WSMsgType.ERROR)
    assert not _server(served)._sio._binary_packet


async def test_whoever_has_shown_a_key_is_not_cut(served: Served) -> None:
    token = await served.gateway.keys.add("ann")
    async with served.http.ws_connect(served.url(SOCKET)) as ws:
        await ws.receive()
        await ws.send_str(f'40{{"token":"{token}"}}')
        assert (await ws.receive()).data.startswith("40{")
        await asyncio.sleep(20)
        await ws.send_str("421" + '["chat:send",{"x":"' + "x" * 200_000 + '"}]')
        assert (await ws.receive()).type is WSMsgType.TEXT


async def test_a_body_that_polls_in_too_much_before_the_key_is_refused(served: Served) -> None:
    async with served.http.get(served.url(POLLING)) as response:
        sid = (await response.text()).partition('"sid":"')[2].partition('"')[0]
    async with served.http.post(served.url(f"{POLLING}&sid={sid}"), data=b"4" + b"x" * 200_000) as response:
        assert response.status == 413
    assert not transports(served)


# -- bodies -----------------------------------------------------------------------------------------------------------

async def test_nothing_is_inflated_before_the_key_is_checked(
    served: Served, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def inflate(*_: Any, **__: Any) -> Any:
        raise AssertionError("a stranger's body is inflated")

    monkeypatch.setattr(http_parser, "ZLibDecompressor", inflate)
    monkeypatch.setattr(request, "_Inflater", inflate)
    for path in ("/aap/sessions", "/api/v1/cloud/sessions", "/api/sessions", "/api/v1/conversations"):
        async with served.http.post(served.url(path), data=BOMB, headers={"Content-Encoding": "gzip"}) as response:
            assert response.status == 401, path


@pytest.mark.parametrize(("size", "why"), [(4_000_000, b"100 times"), (11_000_000, b"larger than 10485760 bytes")])
async def test_a_body_is_inflated_no_further_than_it_may_become(served: Served, size: int, why: bytes) -> None:
    body = gzip.compress(b"0" * size, 9 if b"times" in why else 0)
    headers = {"Content-Encoding": "gzip", **await key(served)}
    async with served.http.post(served.url("/aap/sessions"), data=BytesIO(body), headers=headers) as response:
        assert response.status == 413
        assert why in await response.read()


async def test_a_client_that_asks_is_told_to_send_its_body_only_after_its_key_was_checked(served: Served) -> None:
    right = await served.gateway.keys.add("ann")
    for token, answer in (("wrong", b"HTTP/1.1 401 "), (right, b"HTTP/1.1 100 Continue")):
        client = await line(served)
        await client.send(
            f"POST /aap/sessions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Length: 25\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n".encode())
        assert (await client.some()).startswith(answer)
        await client.send(b'{"agent":{"name":"demo"}}')
        assert b"100 Continue" not in (said := await client.answer())
        assert said.startswith(b"HTTP/1.1 201 ") or b"401" in answer


async def test_a_body_that_is_compressed_as_usual_is_read(served: Served) -> None:
    said, owner = b'{"agent":{"name":"demo"}}', await key(served)
    for encoding, body in (("gzip", gzip.compress(said)), ("deflate", zlib.compress(said)), ("identity", said)):
        headers = {"Content-Encoding": encoding, "Content-Type": "application/json", **owner}
        async with served.http.post(served.url("/aap/sessions"), data=body, headers=headers) as response:
            assert response.status == 201, await response.text()


# -- time -------------------------------------------------------------------------------------------------------------

async def test_the_head_of_a_request_has_a_deadline_however_it_trickles(served: Served) -> None:
    stranger = await line(served)
    loop, began = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    answer = asyncio.create_task(stranger.answer())
    await stranger.send(b"GET / HTTP/1.1\r\n")
    for _ in range(14):
        stranger.trickle(b"X-More: 1\r\n")
        await asyncio.sleep(1)
    assert (await answer).startswith(b"HTTP/1.1 408 ")
    assert loop.time() - began == pytest.approx(15, abs=1.5)


async def test_a_head_that_does_not_end_is_not_kept(served: Served) -> None:
    stranger = await line(served)
    answer = asyncio.create_task(stranger.answer())
    stranger.trickle(b"GET / HTTP/1.1\r\n")
    for number in range(100):
        if answer.done():
            break
        stranger.trickle(b"X-%d: " % number + b"x" * 4000 + b"\r\n")
        await asyncio.sleep(0.1)
    assert (await answer).startswith(b"HTTP/1.1 431 ")
    assert number < 20


async def test_a_connection_that_says_nothing_is_closed_without_a_word(served: Served) -> None:
    began = asyncio.get_running_loop().time()
    assert await (await line(served)).answer() == b""
    assert asyncio.get_running_loop().time() - began == pytest.approx(15, abs=1)


async def test_the_second_request_of_a_connection_has_the_same_deadline(served: Served) -> None:
    client = await line(served)
    whole = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode()
    await client.send(whole)
    await asyncio.sleep(40)
    await client.send(b"GET /healthz HT")
    answer = await client.answer()
    assert answer.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 408 " in answer


async def test_a_connection_with_no_request_is_closed(served: Served) -> None:
    client, loop = await line(served), asyncio.get_running_loop()
    await client.send(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())
    began = loop.time()
    assert (await client.answer()).startswith(b"HTTP/1.1 200 ")
    assert loop.time() - began == pytest.approx(75, abs=2)


async def test_a_body_has_a_deadline_and_more_time_if_it_keeps_coming(served: Served) -> None:
    token = await served.gateway.keys.add("ann")
    head = (f"POST /aap/sessions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n")
    slow, steady = await line(served), await line(served)
    body = b'{"agent":{"name":"demo"}' + b" " * 999_975 + b"}"
    await slow.send(head.format(100).encode(), b"{")
    await steady.send(head.format(len(body)).encode())
    for at in range(0, len(body), 20_000):  # 50 pieces in 50 seconds
        await steady.send(body[at:at + 20_000])
        await asyncio.sleep(1)
    assert (await slow.answer()).startswith(b"HTTP/1.1 408 ")
    assert (await steady.answer()).startswith(b"HTTP/1.1 201 ")


# -- numbers ----------------------------------------------------------------------------------------------------------

async def test_a_hundred_silent_connections_do_not_keep_others_out(served: Served) -> None:
    owner, silent = await key(served), [await line(served) for _ in range(120)]
    await until(lambda: sum(one.is_open for one in silent) == 100)
    assert [one.is_open for one in silent] == [False] * 20 + [True] * 100  # the oldest gave way
    async with served.http.get(served.url("/aap/sessions"), headers=owner) as response:
        assert response.status == 200
    for one in silent:
        one.close()


async def test_those_who_are_in_stay_when_strangers_come(tmp_path: Path) -> None:
    limits = {"max_connections": 6, "max_unauthenticated": 3}
    async with serving(tmp_path, auth="keys", limits=limits) as served, AsyncExitStack() as stack:
        token = await served.gateway.keys.add("ann")
        members = []
        for _ in range(4):
            members.append(member := await line(served))
            await member.send(f"GET /aap/sessions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
                              f"Authorization: Bearer {token}\r\n\r\n".encode())
            await until(lambda: not served.runner.limiter.unauthenticated)  # type: ignore[union-attr]
        silent = [await line(served) for _ in range(10)]
        for one in (*members, *silent):
            stack.callback(one.close)
        await until(lambda: sum(one.is_open for one in silent) == 2)
        assert all(member.is_open for member in members)
        assert len(served.runner.limiter) == 6  # type: ignore[union-attr]


async def test_one_too_many_of_those_who_are_in_is_told_so(tmp_path: Path) -> None:
    async with serving(tmp_path, limits={"max_connections": 1}) as served:
        first = await line(served)
        await first.send(f"GET /aap/sessions HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())
        await until(lambda: not served.runner.limiter.unauthenticated)  # type: ignore[union-attr]
        assert (await (await line(served)).answer()).startswith(b"HTTP/1.1 503 ")
        assert first.is_open
        first.close()
        await until(lambda: not served.runner.limiter)  # type: ignore[union-attr]
        async with served.http.get(served.url("/healthz")) as response:
            assert response.status == 200


# -- the journal ------------------------------------------------------------------------------------------------------

async def test_what_strangers_send_wrong_is_a_line_without_a_traceback_and_a_few_a_minute(served: Served) -> None:
    with capture_logs() as journal:
        for _ in range(8):
            stranger = await line(served)
            await stranger.send(b"GET /?token=dgm_secret nonsense HTTP/9\r\n\r\n")
            assert (await stranger.answer()).startswith(b"HTTP/1.0 400 ")
        await asyncio.sleep(61)
        stranger = await line(served)
        await stranger.send(b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000 + b"\r\n\r\n")
        await stranger.answer()
    assert [(entry["event"], entry["log_level"]) for entry in journal] == [("malformed_request", "info")] * 6
    assert journal[-1]["unwritten"] == 3
    assert "dgm_secret" not in str(journal) and not any("exc_info" in entry for entry in journal)
