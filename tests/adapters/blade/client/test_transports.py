"""Servers that take no websockets are asked again and again, and heard like the others; those that cannot, fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import socketio
from aiohttp import web
from yarl import URL

import gateway.model as m
from adapters.blade.client import transports
from adapters.blade.client.remote import stop_chat
from adapters.blade.client.socketio import Acknowledgement, connect
from adapters.blade.client.transports import (
    NO_WEBSOCKET_STATUSES,
    Endpoint,
    PollingTransport,
    WebsocketRefused,
    WebsocketTransport,
    socket_session,
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
from gateway.ports.remote import NewRemoteSession, ParsedFrame
from tests.adapters.blade.client.test_remote import ASKING, MESSAGES, WEATHER, compare, directive
from tests.support.connection_faults import free_port
from tests.support.dialects.blade.client import blade
from tests.support.dialects.blade.polling_servers import SEPARATOR, Polled, Proxy, served_by
from tests.support.dialects.blade.remote_conversation import HASTE, PATIENCE, kind, remote, talk
from tests.support.dialects.blade.scripted_server import SESSION
from tests.support.gateway_server import until

KEY = "sk-blade-v2-very-secret"
LET_IN = '40{"sid":"b"}'


def place(address: str, key: str = KEY, **patience: float) -> Endpoint:
    url = URL(address).with_path("/socket.io/").with_query(EIO="4")
    return Endpoint(url, key, replace(PATIENCE, **patience) if patience else PATIENCE)


@asynccontextmanager
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with socket_session(PATIENCE) as made:
        yield made


# -- heard like the others --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("status", [400, 426])
async def test_a_server_behind_a_proxy_without_upgrades_is_heard_as_it_is(tmp_path: Path, status: int) -> None:
    async with blade(tmp_path) as served:
        proxy = Proxy(served.address, status)
        async with proxy.address() as address, remote(address) as server:
            for name in ("", "think", "tool", "burst", *ASKING):
                view = await served.gateway.sessions.create("", "demo", settings=m.Settings(client_tools=(WEATHER,)))
                with directive(name):
                    ear = await talk(server, view.session_id, MESSAGES[name], kind)
                    await compare(served, view.session_id, ear)
            assert proxy.upgrades == 1, "what a server does not take is found out once"
            assert proxy.polls > len(ASKING)


async def test_a_chat_is_taken_up_where_the_server_forgot_us(tmp_path: Path) -> None:
    """Six requests, in any order, open a connection, send what is to be said, and ask for what comes of it."""
    async with blade(tmp_path) as served:
        proxy = Proxy(served.address, cuts=(7, 12))
        async with proxy.address() as address, remote(address) as server:
            session_id = await server.open(NewRemoteSession())
            ear = await talk(server, session_id, "/slow 30 there")
            await compare(served, session_id, ear)
        assert len(proxy._forgotten) == 2 and "" not in proxy._forgotten


async def test_a_chat_there_can_be_stopped(tmp_path: Path) -> None:
    async with blade(tmp_path) as served, Proxy(served.address).address() as address, remote(address) as server:
        view = await served.gateway.sessions.create("", "demo")
        talking = asyncio.create_task(talk(server, view.session_id, "/slow 2000 there"))
        await until(lambda: served.gateway.table.turn_count)
        await server.interrupt(view.session_id)
        [(outcome, stop_reason, _, _)] = (await talking).facts.ends
        assert (outcome, stop_reason) == (m.Outcome.INTERRUPTED, m.StopReason.INTERRUPTED)


async def test_a_socketio_server_that_offers_nothing_but_polling_is_heard() -> None:
    sio = socketio.AsyncServer(async_mode="aiohttp", transports=["polling"])
    let_in: list[Any] = []

    @sio.event
    async def connect(sid: str, environ: Any, auth: Any) -> None:
        let_in.append(auth)

    @sio.on("chat:send")
    async def sent(sid: str, body: Any) -> dict[str, Any]:
        async def say(event: str, **more: Any) -> None:
            await sio.emit(event, {"session_id": SESSION, **more}, to=sid)

        await say("chat:start")
        await say("turn:start", turn_id="t1", role="assistant", status="streaming")
        words = {"type": "text", "content": "Grüße.", "text_delta": "Grüße."}
        await say("turn:patch", turn_id="t1", patch_type="add_content", data=words)
        await say("turn:end", turn_id="t1", role="assistant", status="completed")
        await say("chat:end", status="completed", finish_reason="completed", result=None)
        return {"status": "ok"}

    app = web.Application()
    sio.attach(app)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with remote(f"http://127.0.0.1:{runner.addresses[0][1]}", KEY) as server:
        for _ in range(2):
            ear = await talk(server, SESSION, "hello")
            assert ear.facts.messages == {"root": [[("text", "Grüße.")]]}
            assert ear.facts.ends == [(m.Outcome.COMPLETED, m.StopReason.END_TURN, None, None)]
    assert let_in == [{"token": KEY}] * 2
    await sio.shutdown()
    await runner.cleanup()


# -- packets ----------------------------------------------------------------------------------------------------------

async def test_packets_come_in_order_pings_are_answered_and_goodbye_is_said() -> None:
    event = '42["a",{"n":1}]'
    polled = Polled(LET_IN, SEPARATOR.join(("2", event, "bAQID", "6")), '431[{"ok":true}]')
    async with polled.address() as address, session() as http:
        async with connect(http, place(address)) as line:
            assert await line.emit("b", {"m": 2}) == 1
            assert await line.receive(20) == ParsedFrame("a", {"n": 1})
            assert await line.receive(20) == Acknowledgement(1, {"ok": True})
        assert polled.heard == [f'40{{"token":"{KEY}"}}', '421["b",{"m":2}]', "3", "1"]


async def test_who_stops_waiting_misses_nothing() -> None:
    polled = Polled(LET_IN)
    async with polled.address() as address, session() as http, connect(http, place(address)) as line:
        with pytest.raises(TimedOut):
            await line.receive(0.05)
        polled.says.put_nowait('42["late",{}]')
        assert await line.receive(20) == ParsedFrame("late", {})
        assert polled.opened == 1


async def test_a_server_is_not_asked_for_more_than_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_QUEUED_PACKETS", 2)
    events = [f'42["a",{{"n":{number}}}]' for number in range(6)]
    polled = Polled(LET_IN, *(SEPARATOR.join(events[at:at + 2]) for at in (0, 2, 4)))
    async with polled.address() as address, session() as http, connect(http, place(address)) as line:
        carrier = line._carrier
        assert isinstance(carrier, PollingTransport)
        await until(lambda: polled.says.qsize() == 1 and carrier._packets.full())
        assert [(await line.receive(20)).body["n"] for _ in events] == list(range(6))
        assert polled.says.empty()


async def test_what_was_found_out_holds_for_whoever_comes_with_other_secrets() -> None:
    polled = Polled()
    async with polled.address() as address, session() as http:
        first = place(address)
        for there in (first, replace(first, secrets=("hush",))):
            polled.says.put_nowait(LET_IN)
            async with connect(http, there):
                assert there.way.is_polled
        assert (polled.upgrades, polled.opened) == (1, 2)


# -- what goes wrong --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("greeting", "kinds", "words"), [
    (401, BackendFailed, "answered 401 to polling"),
    (404, BackendFailed, "answered 404 to polling"),
    (429, RateLimited, "answered 429"),
    (503, Overloaded, "answered 503"),
    (302, BackendFailed, "with a redirect"),
    ("<html>", BackendFailed, "does not answer polling as it should"),
    ("0{}", BackendFailed, "does not answer polling as it should"),
    ("0{", BackendFailed, "does not answer polling as it should"),
    (b"\xff\xfe", BackendFailed, "no text"),
])
async def test_a_server_that_cannot_be_polled_either(greeting: Any, kinds: type[GatewayError], words: str) -> None:
    polled = Polled()
    polled.greeting = greeting
    async with polled.address() as address, session() as http:
        there = place(address)
        with pytest.raises(kinds, match=words) as failure:
            async with connect(http, there):
                raise AssertionError("nobody was let in")
        assert KEY not in failure.value.message and not there.way.is_polled


@pytest.mark.parametrize(("said", "kinds", "words"), [
    (400, ConnectionLost, "ended the connection"),
    ("1", ConnectionLost, "ended the connection"),
    (500, Overloaded, "answered 500 to polling"),
    (b"\xff", BackendFailed, "no text"),
    ("42[7]", BackendFailed, "without a name"),
])
async def test_a_server_that_breaks_off(said: Any, kinds: type[GatewayError], words: str) -> None:
    polled = Polled(LET_IN, said)
    async with polled.address() as address, session() as http, connect(http, place(address)) as line:
        for _ in range(2 if isinstance(said, int) else 1):
            with pytest.raises(kinds, match=words):
                await line.receive(20)


async def test_an_answer_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_PACKET_BYTES", 1000)
    polled = Polled(LET_IN, "4" + "x" * 1000)
    async with polled.address() as address, session() as http, connect(http, place(address)) as line:
        with pytest.raises(BackendFailed, match="more than 1000 bytes at once"):
            await line.receive(20)


async def test_a_server_that_hangs_is_not_waited_for_longer_than_patience_lasts() -> None:
    polled = Polled()
    async with polled.address() as address, remote(address, KEY, HASTE) as server:
        with pytest.raises(TimedOut, match=r"sent nothing for|did not answer in time"):
            await talk(server, SESSION, "hello")
        polled.stuck = True
        with pytest.raises(TimedOut, match=r"did not answer in time|does not read"):
            await talk(server, SESSION, "hello")


async def test_nobody_there_is_unreachable_by_either_way() -> None:
    async with session() as http:
        there = place(f"http://127.0.0.1:{free_port()}")
        for way in (WebsocketTransport, PollingTransport):
            with pytest.raises(ServerUnreachable, match="cannot be reached"):
                await way.open(http, there)


async def test_only_answers_that_may_mean_it_are_taken_for_no_websockets() -> None:
    status = 200

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status)

    async with served_by(answer) as address, session() as http:
        for status in (*NO_WEBSOCKET_STATUSES, 401, 409, 429, 503):
            with pytest.raises(GatewayError, match=f"answered {status} to a websocket") as refused:
                await WebsocketTransport.open(http, place(address))
            assert isinstance(refused.value, WebsocketRefused) is (status in NO_WEBSOCKET_STATUSES)


async def test_a_server_that_does_not_stop_is_told_of() -> None:
    class Books:
        async def messages(self, session_id: str) -> list[dict[str, Any]]:
            return []

        async def status(self, session_id: str) -> str:
            return "running"

    polled = Polled(LET_IN, '431[{"status":"error","message":"not now"}]')
    async with polled.address() as address, session() as http:
        with pytest.raises(BackendFailed, match="refused to stop: not now"):
            await stop_chat(http, place(address), Books(), SESSION)
