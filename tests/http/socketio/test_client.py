"""One client of Socket.IO, without a socket: it is told no more at once than it takes, and cut if it takes nothing."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.http.socketio import SocketIOClient
from gateway.ports import NO_OPTIONS, Caller, Chunk, Frame


class Wire:
    """A connection that takes so many events at once, or none at all."""

    def __init__(self, room: int, *, takes: bool = True) -> None:
        self.taken: list[list[str]] = []
        self.is_cut = False
        self.eio = self
        self._room, self._takes = room, takes
        self._waiting: asyncio.Queue[str] | None = asyncio.Queue()

    def patience(self) -> float:
        return 30.0 if self._takes else 0.01

    def room(self, transport_id: str) -> int:
        return self._room

    def queue(self, transport_id: str) -> Any:
        queue = self._waiting
        if queue is not None and self._takes:
            self.taken.append([queue.get_nowait() for _ in range(queue.qsize())])
            for _ in self.taken[-1]:
                queue.task_done()
        return queue

    async def send(self, transport_id: str, words: str) -> None:
        if self._waiting is not None:
            self._waiting.put_nowait(words)

    async def cut(self, transport_id: str) -> None:
        self.is_cut = True

    def leave(self) -> None:
        self._waiting = None

    async def hear(self, count: int) -> None:
        frames = (Frame(b"%d" % number, "n") for number in range(count))
        await SocketIOClient(self, "sid", "transport", Caller(user="ann")).send(frames)


async def test_a_packet_has_the_name_and_the_body_of_its_frame() -> None:
    wire = Wire(room=2)
    frames = (Frame(b'{"x":"}"}', "turn:end"), Frame(b"null", 'a"b'))
    await SocketIOClient(wire, "sid", "transport", Caller(user="ann")).send(frames)
    assert wire.taken == [['2["turn:end",{"x":"}"}]', '2["a\\"b",null]']]


async def test_no_more_is_said_at_once_than_there_is_room_for() -> None:
    wire = Wire(room=2)
    await wire.hear(5)
    assert wire.taken == [['2["n",0]', '2["n",1]'], ['2["n",2]', '2["n",3]'], ['2["n",4]']]


async def test_who_takes_nothing_is_cut() -> None:
    wire = Wire(room=2, takes=False)
    with pytest.raises(ConnectionResetError, match="does not read"):
        await wire.hear(1)
    assert wire.is_cut


async def test_who_has_left_is_told_nothing_more() -> None:
    wire = Wire(room=2)
    wire.leave()
    with pytest.raises(ConnectionResetError, match="has left"):
        await wire.hear(5)
    assert wire.taken == [] and not wire.is_cut


class Following:
    """A subscription to a session in which nothing happens."""

    cut_at: int | None = None
    is_draining = False

    def __init__(self) -> None:
        self.is_open = True

    async def chunks(self) -> Sequence[Chunk]:
        await asyncio.Event().wait()
        return ()

    def cut(self) -> None:
        """It is not slow."""

    def close(self) -> None:
        self.is_open = False


async def test_what_is_not_followed_any_more_before_it_began_is_closed_too() -> None:
    peer, one, two = SocketIOClient(Wire(8), "sid", "transport", Caller(user="ann")), Following(), Following()
    peer.follow("sess_1", NO_OPTIONS, one)
    peer.follow("sess_1", NO_OPTIONS, two)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (one.is_open, two.is_open) == (False, True)
    peer.unfollow_all()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not two.is_open
