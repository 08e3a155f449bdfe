"""The Socket.IO client: events, acknowledgements, transports, refusals, raw packets, and waits that end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import socketio as published  # type: ignore[import-untyped]
from aiohttp import web
from aiohttp.test_utils import TestServer

from conformance.kit import socketio
from conformance.kit.expect import Failed, Unanswered
from conformance.kit.http import HttpClient
from conformance.kit.secrets import Redactor
from conformance.kit.socketio import Rejected, SocketEvent
from conformance.kit.transcript import Transcript

KEY = "sk-blade-v2-a-key"


def server() -> web.Application:
    io, app = published.AsyncServer(async_mode="aiohttp"), web.Application()

    async def connect(sid: str, environ: Any, auth: Any = None) -> None:
        if auth != {"token": KEY}:
            raise published.exceptions.ConnectionRefusedError("who are you?")

    async def count(sid: str, body: Any) -> Any:
        for number in range(body["to"]):
            await io.emit("number", {"is": number}, room=sid)
        return {"counted": body["to"]}

    async def bare(sid: str) -> None:
        await io.emit("bare", room=sid)

    for name, work in (("connect", connect), ("count", count), ("bare", bare)):
        io.on(name, work)
    io.attach(app)
    return app


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    async with TestServer(server()) as place, aiohttp.ClientSession() as session:
        yield HttpClient(session, str(place.make_url("")).rstrip("/"), Transcript(Redactor(key=KEY)), KEY, timeout=0.5)


@pytest.mark.parametrize("transports", [("polling",), ("websocket",), ("polling", "websocket")])
async def test_events_come_in_order_over_every_transport(client: HttpClient, transports: tuple[str, ...]) -> None:
    async with socketio.connect(client, transports=transports) as link:
        assert link.is_open
        assert link.transport == transports[-1]
        assert await link.call("count", {"to": 5}) == {"counted": 5}
        assert [await link.next() for _ in range(5)] == [SocketEvent("number", {"is": number}) for number in range(5)]
        assert len(link.heard) == 5
    assert not link.is_open


async def test_a_server_may_tell_much_at_once(client: HttpClient) -> None:
    async with socketio.connect(client, transports=("polling",)) as link:
        assert await link.call("count", {"to": 100}) == {"counted": 100}
        assert [(await link.next()).body for _ in range(100)] == [{"is": number} for number in range(100)]


async def test_an_event_may_have_no_body(client: HttpClient) -> None:
    async with socketio.connect(client) as link:
        await link.emit("bare")
        assert await link.next() == SocketEvent("bare", None)


async def test_packets_are_in_the_transcript_and_the_key_is_not(client: HttpClient) -> None:
    async with socketio.connect(client) as link:
        await link.call("count", {"to": 1})
    told = str(client.transcript)
    assert '> 421["count",{"to":1}]' in told
    assert '< 42["number",{"is":0}]' in told
    assert KEY not in told


@pytest.mark.parametrize("auth", [None, {}, {"token": "another"}])
async def test_a_refused_connection_says_why(client: HttpClient, auth: Any) -> None:
    with pytest.raises(Rejected, match="who are you"):
        async with socketio.connect(client, auth):
            raise AssertionError("it cannot open")


async def test_a_place_without_a_server_is_unanswered() -> None:
    async with TestServer(web.Application()) as place, aiohttp.ClientSession() as session:
        client = HttpClient(session, str(place.make_url("")).rstrip("/"), Transcript(), None, timeout=0.3)
        with pytest.raises(Unanswered, match="to open a Socket"):
            async with socketio.connect(client):
                raise AssertionError("it cannot open")


async def test_silence_is_a_failure(client: HttpClient) -> None:
    async with socketio.connect(client) as link:
        with pytest.raises(Failed, match=r"another event within 0\.1 s"):
            await link.next(within=0.1)
        with pytest.raises(Failed, match="`nobody` to be acknowledged"):
            await link.call("nobody", {}, within=0.1)


async def test_raw_packets_are_sent_as_they_are(client: HttpClient) -> None:
    async with socketio.raw(client) as socket:
        assert "sid" in socketio.unpacked(await socket.next_text() or "", "0")
        await socket.send_text(socketio.packet("0", {"token": KEY}))
        assert "sid" in socketio.unpacked(await socket.next_text() or "", "40")
        await socket.send_text(socketio.packet("2", ["count", {"to": 1}]))
        assert socketio.unpacked(await socket.next_text() or "", "42") == ["number", {"is": 0}]


async def test_polling_is_plain_requests(client: HttpClient) -> None:
    opened = socketio.unpacked((await socketio.polled(client))[0], "0")
    assert await socketio.polled(client, opened["sid"], [socketio.packet("0", {"token": KEY})]) == ["OK"]
    assert socketio.unpacked((await socketio.polled(client, opened["sid"]))[0], "40")


def test_a_packet_of_another_kind_is_a_failure() -> None:
    assert socketio.packet("1") == "41"
    with pytest.raises(Failed, match="of kind 40"):
        socketio.unpacked('44{"message":"no"}', "40")


ATTACHED = '451-["x",{"_placeholder":true,"num":3}]\x1ebAAAA'
GARBAGE = ["42", "42[]", '42["x"', "42{}", "49", "b!", ATTACHED]


@asynccontextmanager
async def garbling(packets: Sequence[str]) -> AsyncIterator[HttpClient]:
    """A server that opens in good order, and then says these packets."""
    waiting = [['0{"sid":"one","upgrades":[],"pingInterval":25000,"pingTimeout":20000}'], ['40{"sid":"two"}'], packets]

    async def poll(request: web.Request) -> web.Response:
        if request.method == "POST":
            return web.Response(text="ok")
        if not waiting:
            await asyncio.sleep(30)
        return web.Response(text="\x1e".join(waiting.pop(0)))

    app = web.Application()
    app.router.add_route("*", socketio.PATH, poll)
    async with TestServer(app) as place, aiohttp.ClientSession() as session:
        yield HttpClient(session, str(place.make_url("")).rstrip("/"), Transcript(), None, timeout=5.0)


@pytest.mark.parametrize("packet", GARBAGE)
async def test_packets_nobody_can_read_are_a_failure(packet: str, caplog: pytest.LogCaptureFixture) -> None:
    async with garbling([packet, '42["after",7]']) as client, socketio.connect(client, None, ["polling"]) as link:
        with pytest.raises(Failed, match="packets that a Socket"):
            while True:
                await link.next()
    assert caplog.text == ""


OPENINGS = ["", "{", "[]", "7", "{}", '{"sid":7}', '{"sid":"x","upgrades":7,"pingInterval":1,"pingTimeout":1}']


@pytest.mark.parametrize("opening", OPENINGS)
async def test_a_handshake_nobody_can_read_is_refused(opening: str) -> None:
    async def poll(request: web.Request) -> web.Response:
        return web.Response(text=f"0{opening}")

    app = web.Application()
    app.router.add_get(socketio.PATH, poll)
    async with TestServer(app) as place, aiohttp.ClientSession() as session:
        client = HttpClient(session, str(place.make_url("")).rstrip("/"), Transcript(), None, timeout=5.0)
        with pytest.raises(Failed, match="to open a Socket"):
            async with socketio.connect(client):
                raise AssertionError("it cannot open")
