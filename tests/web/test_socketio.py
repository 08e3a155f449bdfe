"""The Socket.IO transport by itself: who is heard in which order, who is refused, and who is cut."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import socketio
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.ports import Chunk
from gateway.web import Guard, Later, Peer, SocketServer, keep_sockets
from tests.served import until


class Ann:
    """Knows one key."""

    def verify(self, token: str) -> str | None:
        return "ann" if token == "key" else None


class Feed:
    """A subscription that says what it is given."""

    def __init__(self) -> None:
        self.ready: asyncio.Queue[list[bytes]] = asyncio.Queue()
        self.closed = False
        self.cut_at: int | None = None
        self.leaving = False

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
        self.left: list[str] = []
        self.peers: list[Peer] = []
        self.feed = Feed()
        self.may_finish = asyncio.Event()

    async def hear(self, peer: Peer, event: str, said: Any) -> Any:
        self.peers.append(peer)
        if event == "slow":
            await self.may_finish.wait()
        self.heard.append(f"{event} {said}")
        if event == "follow":
            peer.follow("s", "plain", self.feed, keep=lambda frame: b"skip" not in frame)
        if event == "later":
            return Later(self.answer())
        return {"owner": peer.owner, "follows": peer.follows("s")}

    async def answer(self) -> str:
        await self.may_finish.wait()
        return "at last"

    async def gone(self, peer: Peer) -> None:
        self.left.append(peer.owner)


@asynccontextmanager
async def listening(**more: Any) -> AsyncIterator[tuple[Listener, str]]:
    listener, app = Listener(), web.Application()
    given: dict[str, Any] = {"patience": lambda: 0.3, "ping_seconds": 25.0, "most_bytes": 100_000, "origins": ()}
    server = SocketServer(listener, Guard(Ann()), **{**given, **more})
    keep_sockets(app)
    app.add_routes(server.routes("/socket.io/"))
    async with TestServer(app) as served:
        yield listener, str(served.make_url("/"))


@asynccontextmanager
async def client(address: str, **options: Any) -> AsyncIterator[Any]:
    sio = socketio.AsyncClient(reconnection=False)
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
        frames = [b'{"event":"e","data":%d}' % n for n in range(600)]
        listener.feed.ready.put_nowait([*frames, b'{"event":"skip","data":0}'])
        listener.feed.ready.put_nowait([b'{"event":"last","data":0}'])
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
            listener.feed.ready.put_nowait([b'{"event":"e","data":1}'] * 20)
        await until(lambda: listener.feed.closed)
        await fine.call("still here", None, timeout=30)
        await sio.eio.http.close()
        sio.eio.write_loop_task.cancel()


async def test_a_packet_that_is_too_large_ends_its_connection() -> None:
    async with listening() as (listener, address), client(address, transports=["websocket"]) as sio:
        await sio.emit("big", "x" * 200_000)
        await until(lambda: not sio.connected)
        assert listener.heard == []


async def test_nonsense_ends_nothing() -> None:
    async with listening() as (_, address), client(address, transports=["websocket"]) as sio:
        for words in ("2[NaN]", "2{", "2[]", "9", "2/other,[1]"):
            await sio.eio.send(words)
        assert (await sio.call("hi", 1, timeout=30))["owner"] == "ann"


async def test_pages_of_other_sites_are_refused_unless_named() -> None:
    import aiohttp

    async with listening(origins=["https://good.example"]) as (_, address), aiohttp.ClientSession() as http:
        for origin, status in (("https://good.example", 200), ("https://evil.example", 400)):
            at = f"{address}socket.io/?EIO=4&transport=polling"
            async with http.get(at, headers={"Origin": origin}) as response:
                assert response.status == status
