"""One connection: an answer is the same wherever its packets are cut, however it ends, and on either event loop."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from gateway.client import Http1Connection
from tests.support.client.byte_server import END, chunk, head
from tests.support.client.open_connection import CHUNKED, COUNTED, TALK, OpenConnection

ANNOUNCED = b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" + COUNTED
ZIPPED = head(Content_Encoding="gzip") + chunk(gzip.compress(TALK, mtime=0)) + END


async def told(pieces: list[bytes], *, closes: bool = False) -> tuple[int, bytes, bool]:
    """Status and body of an answer in these packets, and whether the wire can be used again."""
    ends = OpenConnection()
    hearing = asyncio.ensure_future(ends.heard())
    for piece in pieces:
        ends.wire.data_received(piece)
        await asyncio.sleep(0)
    if closes:
        ends.wire.connection_lost(None)
    body = await hearing
    status = ends.wire.status
    ends.wire.finish()
    assert ends.line.is_cut is not bool(ends.rested) or closes
    return status, body, bool(ends.rested)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % len(stream) for place in places}), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges) if end > start]


@pytest.mark.parametrize("answer", [CHUNKED, COUNTED, ANNOUNCED, ZIPPED], ids=["chunked", "counted", "100", "gzip"])
@given(places=st.lists(st.integers(0, 10_000), max_size=12))
def test_an_answer_is_the_same_wherever_it_is_cut(answer: bytes, places: list[int]) -> None:
    assert asyncio.run(told(cut(answer, places))) == (200, TALK, True)


@pytest.mark.parametrize("answer", [CHUNKED, COUNTED, ANNOUNCED, ZIPPED], ids=["chunked", "counted", "100", "gzip"])
async def test_an_answer_byte_by_byte(answer: bytes) -> None:
    assert await told([answer[at:at + 1] for at in range(len(answer))]) == (200, TALK, True)


async def test_an_answer_may_end_with_its_connection() -> None:
    assert await told([b"HTTP/1.1 200 OK\r\n\r\n", TALK], closes=True) == (200, TALK, False)


@pytest.mark.parametrize("more", [b"Connection: close\r\n", b""])
async def test_who_says_goodbye_is_not_asked_again(more: bytes) -> None:
    answer = b"HTTP/1.%d 200 OK\r\n%bContent-Length: 2\r\n\r\nhi" % (1 if more else 0, more)
    assert await told([answer]) == (200, b"hi", False)


async def test_a_second_answer_that_nobody_asked_for() -> None:
    assert await told([COUNTED + COUNTED]) == (200, TALK, False)
    ends = OpenConnection()
    ends.wire.data_received(COUNTED)
    assert await ends.heard() == TALK
    ends.wire.finish()
    assert ends.rested == [ends.wire]
    ends.wire.data_received(COUNTED)
    assert ends.line.is_cut and not ends.wire.is_open


async def test_one_answer_after_the_other() -> None:
    ends = OpenConnection()
    for answer, body in ((CHUNKED, TALK), (b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", b"no"), (ZIPPED, TALK)):
        ends.wire.data_received(answer)
        assert await ends.heard() == body
        ends.wire.finish()
        assert ends.rested.pop() is ends.wire
        ends.ask()
    assert ends.line.written.count(b"GET / HTTP/1.1") == 4


# -- on a real connection, on either loop -----------------------------------------------------------------------------

async def over_a_socket() -> tuple[bytes, bool, bool]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            for piece in cut(CHUNKED, list(range(0, 400, 7))):
                writer.write(piece)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port, loop, rested = server.sockets[0].getsockname()[1], asyncio.get_running_loop(), list[Http1Connection]()
    lost = asyncio.Event()
    _, wire = await loop.create_connection(
        lambda: Http1Connection("there", loop, rested.append, lambda wire: lost.set()), "127.0.0.1", port)
    said = b""
    for _ in range(2):
        wire.send(b"GET / HTTP/1.1\r\n\r\n", first=30, idle=30, total=30)
        await wire.read_head()
        while piece := await wire.read_body():
            said += piece
        wire.finish()
    await asyncio.wait_for(lost.wait(), 60)
    server.close()
    return said, wire.is_open, rested == [wire, wire]


@pytest.mark.parametrize("make", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_on_either_loop(make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    work: Callable[[], Awaitable[Any]] = over_a_socket
    with asyncio.Runner(loop_factory=make) as runner:
        assert runner.run(work()) == (TALK * 2, False, True)  # type: ignore[arg-type]
