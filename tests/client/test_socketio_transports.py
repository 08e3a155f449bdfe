"""Packets over a WebSocket or by long polling; a server that can do neither fails in clear words."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from gateway.client import Acknowledgement, HttpClient, SocketIOConnector, socketio_transports
from gateway.client.socketio_transports import (
    NO_WEBSOCKET_STATUSES,
    PollingTransport,
    WebSocketRefused,
    WebSocketTransport,
    reject_redirects,
)
from gateway.errors import (
    BackendFailed,
    ConnectionLost,
    GatewayError,
    Overloaded,
    RateLimited,
    ServerUnreachable,
    TimedOut,
)
from gateway.ports import ParsedFrame, Timeouts
from tests.support.client.polling_servers import SEPARATOR, Polled, served_by
from tests.support.connection_faults import free_port
from tests.support.gateway_server import until

KEY = "sk-very-secret-0123456789"
LET_IN = '40{"sid":"b"}'
PATIENCE = Timeouts(connect=20, first_byte=20, idle=20, total=60, attempts=3)


def upstream(address: str) -> HttpClient:
    url = URL(address).with_path("/socket.io/").with_query(EIO="4")
    return HttpClient(str(url), secrets=(KEY,), timeouts=PATIENCE)


@asynccontextmanager
async def connector(address: str) -> AsyncIterator[SocketIOConnector]:
    made = SocketIOConnector(upstream(address), auth={"token": KEY})
    try:
        yield made
    finally:
        await made.close()


# -- packets ----------------------------------------------------------------------------------------------------------

async def test_packets_come_in_order_pings_are_answered_and_goodbye_is_said() -> None:
    event = '42["a",{"n":1}]'
    polled = Polled(LET_IN, SEPARATOR.join(("2", event, "bAQID", "6")), '431[{"ok":true}]')
    async with polled.address() as address, connector(address) as sockets:
        async with sockets.connect() as line:
            assert await line.emit("b", {"m": 2}) == 1
            assert await line.receive(20) == ParsedFrame("a", {"n": 1})
            assert await line.receive(20) == Acknowledgement(1, {"ok": True})
        assert polled.heard == [f'40{{"token":"{KEY}"}}', '421["b",{"m":2}]', "3", "1"]


async def test_who_stops_waiting_misses_nothing() -> None:
    polled = Polled(LET_IN)
    async with polled.address() as address, connector(address) as sockets, sockets.connect() as line:
        with pytest.raises(TimedOut):
            await line.receive(0.05)
        polled.says.put_nowait('42["late",{}]')
        assert await line.receive(20) == ParsedFrame("late", {})
        assert polled.opened == 1


async def test_a_server_is_not_asked_for_more_than_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socketio_transports, "MAX_QUEUED_PACKETS", 2)
    events = [f'42["a",{{"n":{number}}}]' for number in range(6)]
    polled = Polled(LET_IN, *(SEPARATOR.join(events[at:at + 2]) for at in (0, 2, 4)))
    async with polled.address() as address, connector(address) as sockets, sockets.connect() as line:
        transport = line.transport
        assert isinstance(transport, PollingTransport)
        await until(lambda: polled.says.qsize() == 1 and transport._packets.full())
        assert [(await line.receive(20)).body["n"] for _ in events] == list(range(6))
        assert polled.says.empty()


async def test_what_the_server_takes_is_found_out_once() -> None:
    polled = Polled()
    async with polled.address() as address, connector(address) as sockets:
        for _ in range(2):
            polled.says.put_nowait(LET_IN)
            async with sockets.connect():
                assert sockets.is_polled
        assert (polled.upgrades, polled.opened) == (1, 2)


# -- what goes wrong --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("greeting", "kinds", "words"), [
    (401, BackendFailed, "answered 401 to polling"),
    (404, BackendFailed, "answered 404 to polling"),
    (429, RateLimited, "answered 429"),
    (503, Overloaded, "answered 503"),
    (302, BackendFailed, "with a redirect"),
    ("<html>", BackendFailed, "its response to polling is malformed"),
    ("0{}", BackendFailed, "its response to polling is malformed"),
    ("0{", BackendFailed, "its response to polling is malformed"),
    (b"\xff\xfe", BackendFailed, "not text"),
])
async def test_a_server_that_cannot_be_polled_either(greeting: Any, kinds: type[GatewayError], words: str) -> None:
    polled = Polled()
    polled.greeting = greeting
    async with polled.address() as address, connector(address) as sockets:
        with pytest.raises(kinds, match=words) as failure:
            async with sockets.connect():
                raise AssertionError("nobody was let in")
        assert KEY not in failure.value.message and not sockets.is_polled


@pytest.mark.parametrize(("said", "kinds", "words"), [
    (400, ConnectionLost, "ended the connection"),
    ("1", ConnectionLost, "ended the connection"),
    (500, Overloaded, "answered 500 to polling"),
    (b"\xff", BackendFailed, "not text"),
    ("42[7]", BackendFailed, "without a name"),
])
async def test_a_server_that_breaks_off(said: Any, kinds: type[GatewayError], words: str) -> None:
    polled = Polled(LET_IN, said)
    async with polled.address() as address, connector(address) as sockets, sockets.connect() as line:
        for _ in range(2 if isinstance(said, int) else 1):
            with pytest.raises(kinds, match=words):
                await line.receive(20)


async def test_an_answer_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socketio_transports, "MAX_PACKET_BYTES", 1000)
    polled = Polled(LET_IN, "4" + "x" * 1000)
    async with polled.address() as address, connector(address) as sockets, sockets.connect() as line:
        with pytest.raises(BackendFailed, match="more than 1000 bytes at once"):
            await line.receive(20)


async def test_nobody_there_is_unreachable_by_either_way() -> None:
    there = upstream(f"http://127.0.0.1:{free_port()}")
    async with there.aiohttp_session(reject_redirects) as http:
        for way in (WebSocketTransport, PollingTransport):
            with pytest.raises(ServerUnreachable, match="cannot be reached"):
                await way.open(http, there)


async def test_only_answers_that_may_mean_it_are_taken_for_no_websockets() -> None:
    status = 200

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status)

    async with served_by(answer) as address, upstream(address).aiohttp_session(reject_redirects) as http:
        for status in (*NO_WEBSOCKET_STATUSES, 401, 409, 429, 503):
            with pytest.raises(GatewayError, match=f"answered {status} to a websocket") as refused:
                await WebSocketTransport.open(http, upstream(address))
            assert isinstance(refused.value, WebSocketRefused) is (status in NO_WEBSOCKET_STATUSES)
