"""Servers that take no websockets are asked again and again, and heard like the others; those that cannot, fail."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import socketio
from aiohttp import web
from yarl import URL

import gateway.model as m
from adapters.blade.client.remote import stop_chat
from gateway.client import HttpClient, SocketIOConnector
from gateway.errors import BackendFailed, TimedOut
from gateway.ports.remote import NewRemoteSession
from tests.adapters.blade.client.test_remote import ASKING, MESSAGES, WEATHER, compare, directive
from tests.support.client.polling_servers import Polled, Proxy
from tests.support.dialects.blade.client import blade
from tests.support.dialects.blade.remote_conversation import HASTE, PATIENCE, kind, remote, talk
from tests.support.dialects.blade.scripted_server import SESSION
from tests.support.gateway_server import until

KEY = "sk-blade-v2-very-secret"
LET_IN = '40{"sid":"b"}'


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


# -- what goes wrong ------------------------------------------------------------------------------------------------

async def test_a_server_that_hangs_is_not_waited_for_longer_than_patience_lasts() -> None:
    polled = Polled()
    async with polled.address() as address, remote(address, KEY, HASTE) as server:
        with pytest.raises(TimedOut, match=r"sent nothing for|did not answer in time"):
            await talk(server, SESSION, "hello")
        polled.stuck = True
        with pytest.raises(TimedOut, match=r"did not answer in time|does not read"):
            await talk(server, SESSION, "hello")


async def test_a_server_that_does_not_stop_is_told_of() -> None:
    class Books:
        async def messages(self, session_id: str) -> list[dict[str, Any]]:
            return []

        async def status(self, session_id: str) -> str:
            return "running"

    polled = Polled(LET_IN, '431[{"status":"error","message":"not now"}]')
    async with polled.address() as address:
        url = URL(address).with_path("/socket.io/").with_query(EIO="4")
        sockets = SocketIOConnector(HttpClient(str(url), timeouts=PATIENCE))
        with pytest.raises(BackendFailed, match="refused to stop: not now"):
            await stop_chat(sockets, Books(), SESSION)
        await sockets.close()
