"""The Socket.IO transport by itself: who is heard in which order, who is refused, and who is cut."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import socketio
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from gateway import time_slices
from gateway.config.settings import LimitSettings
from gateway.errors import GatewayError
from gateway.http import (
    CONNECTION_LIMITS,
    WRONG_KEY_LIMITER,
    Authenticator,
    ErrorMiddleware,
    WrongKeyLimiter,
    track_open_sockets,
)
from gateway.http.socketio import DeferredAck, SocketIOClient, SocketIOServer
from gateway.json_values import Steps, read_json_in_steps
from gateway.ports import NO_OPTIONS, Chunk, Frame
from gateway.ports.keys import Key
from tests.support.gateway_server import until


class Ann:
    """Knows one key."""

    known: str | None = "key"

    async def verify(self, token: str, address: str = "") -> Key | None:
        return Key(name="hers", user="ann", hash="h", created=datetime.now(UTC)) if token == self.known else None


class Feed:
    """A subscription that says what it is given."""

    def __init__(self) -> None:
        self.ready: asyncio.Queue[list[Frame]] = asyncio.Queue()
        self.closed = False
        self.cut_at: int | None = None
        self.is_draining = False

    async def chunks(self) -> Sequence[Chunk]:
        frames = await self.ready.get()
        return [Chunk(1, tuple(frames), False)] if frames else ()

    def cut(self) -> None:
        self.cut_at = 0

    def close(self) -> None:
        self.closed = True


class Listener:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.refused: list[str] = []
        self.left: list[str] = []
        self.peers: list[SocketIOClient] = []
        self.feed = Feed()
        self.may_finish = asyncio.Event()

    async def on_event(self, peer: SocketIOClient, event: str, said: Any) -> Any:
        self.peers.append(peer)
        if event == "slow":
            await self.may_finish.wait()
        self.heard.append(f"{event} {said}")
        if event == "follow":
            peer.follow("s", NO_OPTIONS, self.feed, after=0)
        if event == "later":
            return DeferredAck(self.answer())
        return {"owner": peer.owner, "follows": "plain" if peer.followed_options("s") == NO_OPTIONS else None}

    async def answer(self) -> str:
        await self.may_finish.wait()
        return "at last"

    async def send_error(self, peer: SocketIOClient, error: GatewayError) -> Any:
        self.refused.append(error.message)
        await peer.send([Frame(b"1", "refused")])
        return {"status": "refused"}

    async def on_disconnect(self, peer: SocketIOClient) -> None:
        self.left.append(peer.owner)


class NoPacket:
    """What no client sends."""

    packet_type, data, binary = 4, "words", False

    def encode(self, b64: bool = False) -> str:
        return "x"


def spell(path: str, error: GatewayError) -> tuple[int, Any]:
    return error.code.status, {"message": error.message}


@asynccontextmanager
async def listening(**more: Any) -> AsyncIterator[tuple[Listener, str]]:
    listener, app = Listener(), web.Application(middlewares=[ErrorMiddleware(spell).middleware])
    given: dict[str, Any] = {"patience": lambda: 0.3, "ping_seconds": 25.0, "most_bytes": 100_000}
    server = SocketIOServer(listener, **{"guard": Authenticator(Ann()), **given, **more})
    track_open_sockets(app)
    app[CONNECTION_LIMITS], app[WRONG_KEY_LIMITER] = LimitSettings, WrongKeyLimiter(lambda: 20)
    app.add_routes(server.routes("/socket.io/"))
    async with TestServer(app) as served:
        yield listener, str(served.make_url("/"))


@asynccontextmanager
async def client(address: str, **options: Any) -> AsyncIterator[Any]:
    sio = socketio.AsyncClient(reconnection=False)
    sio.told = []
    sio.on("*", lambda event, _: sio.told.append(event))
    await sio.connect(address, wait_timeout=30, **{"auth": {"token": "key"}, **options})
    try:
        yield sio
    finally:
        await sio.disconnect()
        await sio.shutdown()


async def test_who_asks_is_known_by_token_or_header() -> None:
    async with listening() as (listener, address):
        async with client(address) as sio:
            assert (await sio.call("hi", 1, timeout=30))["owner"] == "ann"
        async with client(address, auth=None, headers={"Authorization": "Bearer key"}) as sio:
            assert (await sio.call("hi", 2, timeout=30))["owner"] == "ann"
        for auth in (None, {"token": "no"}, {"token": 5}, "words"):
            with pytest.raises(socketio.exceptions.ConnectionError):
                async with client(address, auth=auth):
                    pass
        await until(lambda: listener.left == ["ann", "ann"])
        assert listener.heard == ["hi 1", "hi 2"]


async def test_what_is_said_first_is_done_first() -> None:
    async with listening() as (listener, address), client(address) as sio, client(address) as other:
        for n in range(20):
            await sio.emit("slow" if n == 0 else "quick", n)
        await other.call("mine", None, timeout=30)
        assert listener.heard == ["mine None"]
        listener.may_finish.set()
        await until(lambda: len(listener.heard) == 21)
        assert listener.heard[1:] == ["slow 0", *(f"quick {n}" for n in range(1, 20))]


async def test_a_long_packet_is_read_in_turns_and_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    text, began, in_turns = '",' * 500_000, list[int](), list[Any]()

    def read(text: str) -> Steps[Any]:
        began.append(len(text))
        return read_json_in_steps(text)

    async def recorded(steps: Steps[Any]) -> Any:
        in_turns.append(steps)
        return await time_slices.run_in_slices(steps)

    monkeypatch.setattr("gateway.http.socketio.library.run_in_slices", recorded)
    async with listening(most_bytes=10_000_000, reads=read) as (listener, address), client(address) as sio:
        await sio.emit("long", text)
        await sio.call("short", 1, timeout=30)
        assert listener.heard == [f"long {text}", "short 1"]
        await sio.eio.send("[" + '"",' * 300_000 + "0]")
        await sio.call("short", 2, timeout=30)
        assert "malformed packet" in listener.refused[0], "what is no event is not read"
    assert len(in_turns) == len([size for size in began if size > 500_000]) == 1


async def test_an_answer_that_takes_its_time_holds_nobody_up() -> None:
    async with listening() as (listener, address), client(address) as sio:
        later = asyncio.create_task(sio.call("later", None, timeout=30))
        await sio.call("quick", None, timeout=30)
        assert not later.done()
        listener.may_finish.set()
        assert await later == "at last"


@pytest.mark.parametrize("transports", [["websocket"], ["polling"]])
async def test_what_is_followed_arrives_in_order(transports: list[str]) -> None:
    async with listening() as (listener, address), client(address, transports=transports) as sio:
        heard: list[Any] = []
        sio.on("*", lambda event, payload: heard.append((event, payload)))
        assert (await sio.call("follow", None, timeout=30))["follows"] == "plain"
        frames = [Frame(b"%d" % n, "e", n + 1) for n in range(600)]
        listener.feed.ready.put_nowait([*frames, Frame(b"0", "skip", 0)])
        listener.feed.ready.put_nowait([Frame(b"0", "last", 601)])
        await until(lambda: heard and heard[-1][0] == "last")
        assert heard == [*(("e", n) for n in range(600)), ("last", 0)]
        listener.feed.ready.put_nowait([])
        await until(lambda: listener.feed.closed)


async def test_who_leaves_is_followed_no_more() -> None:
    async with listening() as (listener, address):
        async with client(address) as sio:
            await sio.call("follow", None, timeout=30)
        await until(lambda: listener.feed.closed and listener.left == ["ann"])


async def test_a_reader_that_was_cut_is_disconnected_so_that_it_can_resume() -> None:
    async with listening() as (listener, address), client(address) as sio:
        await sio.call("follow", None, timeout=30)
        listener.feed.cut_at = 5
        listener.feed.ready.put_nowait([])
        await until(lambda: not sio.connected)


async def test_a_client_that_stops_polling_is_cut() -> None:
    async with listening() as (listener, address), client(address, transports=["websocket"]) as fine:
        sio = socketio.AsyncClient(reconnection=False)
        await sio.connect(address, auth={"token": "key"}, transports=["polling"], wait_timeout=30)
        await sio.call("follow", None, timeout=30)
        sio.eio.read_loop_task.cancel()
        for _ in range(3):
            listener.feed.ready.put_nowait([Frame(b"1", "e", 1)] * 20)
        await until(lambda: listener.feed.closed)
        await fine.call("still here", None, timeout=30)
        await sio.eio.http.close()
        sio.eio.write_loop_task.cancel()


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_a_packet_that_is_too_large_is_refused_before_its_connection_ends(transport: str) -> None:
    async with listening() as (listener, address), client(address, transports=[transport]) as sio:
        await sio.emit("big", "x" * 200_000)
        await until(lambda: not sio.connected)
        assert listener.heard == []
        assert listener.refused == ["a packet is larger than 100000 bytes"]
        assert sio.told == ["refused"]


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_a_packet_that_cannot_be_read_is_refused_in_a_line_and_ends_nothing(transport: str) -> None:
    nested = "[" * 5000 + "]" * 5000
    packets = ("2[NaN]", "2{", "2[]", "2", "9", '2{"0":1}', f'2["e",{nested}]')
    async with listening() as (listener, address), client(address, transports=[transport]) as sio:
        with capture_logs() as journal:
            for packet in packets:
                await sio.eio.send(packet)
            assert (await sio.call("hi", 1, timeout=30))["owner"] == "ann"
            await until(lambda: len(listener.refused) == len(packets))
    assert all(words.startswith("malformed packet: ") for words in listener.refused[:-1])
    assert listener.refused[-1] == "nested 5001 levels deep; at most 150 levels are possible"
    assert [(line["event"], line["log_level"], "exc_info" in line) for line in journal] == [
        ("socketio_packet_malformed", "info", False)] * 5  # and no more in this minute


async def test_whoever_waits_for_an_acknowledgement_gets_it_for_a_packet_that_cannot_be_read() -> None:
    async with listening() as (_, address), client(address, transports=["websocket"]) as sio:
        answers = asyncio.Queue[Any]()
        await sio.emit("hi", 1, callback=answers.put_nowait)
        assert (await answers.get())["owner"] == "ann"
        number = sio._generate_ack_id("/", answers.put_nowait)
        await sio.eio.send(f'2{number}["e",NaN]')
        assert await answers.get() == {"status": "refused"}


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_what_is_no_packet_at_all_costs_a_line(transport: str) -> None:
    async with listening() as (_, address), client(address) as fine:
        with capture_logs() as journal:
            async with client(address, transports=[transport]) as sio:
                await sio.eio._send_packet(NoPacket())
                await until(lambda: journal)
        assert (await fine.call("hi", 1, timeout=30))["owner"] == "ann"
    assert [(line["event"], line["log_level"], "exc_info" in line) for line in journal] == [
        ("socketio_packet_malformed", "info", False)]


async def test_nonsense_to_a_namespace_that_nobody_serves_is_dropped() -> None:
    async with listening() as (listener, address), client(address, transports=["websocket"]) as sio:
        await sio.eio.send("2/other,[1]")
        assert (await sio.call("hi", 1, timeout=30))["owner"] == "ann"
        assert listener.refused == []


async def test_a_key_that_was_revoked_is_refused_and_disconnected_and_not_heard_meanwhile() -> None:
    guard = Authenticator(Ann())
    async with listening(guard=guard) as (listener, address), client(address) as sio:
        assert (await sio.call("hi", 1, timeout=30))["owner"] == "ann"
        guard.open_requests.revoke(["h"])
        await sio.emit("hi", 2)
        await until(lambda: not sio.connected)
        assert (listener.heard, listener.refused) == (["hi 1"], ["the key was revoked or has expired"])
        await until(lambda: not len(guard.open_requests))
