"""A subscription is pumped into a response: several chunks in one write, up to where it is to end."""

import asyncio
from collections.abc import Sequence

from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from gateway.http import stream_sse
from gateway.ports import Chunk, Frame
from tests.support.gateway_server import until


class Given:
    """A subscription that hands out what it was given, then is over."""

    def __init__(self, *batches: Sequence[Chunk]) -> None:
        self.batches = list(batches)
        self.closed = False
        self.cut_at: int | None = None
        self.is_draining = False

    async def chunks(self) -> Sequence[Chunk]:
        return self.batches.pop(0) if self.batches else ()

    def cut(self) -> None:
        self.cut_at = 0

    def close(self) -> None:
        self.closed = True


def chunk(seq: int, *frames: bytes, yields: bool = False) -> Chunk:
    return Chunk(seq, tuple(map(Frame, frames)), yields)


def serving(subscription: object, **options: object) -> web.Application:
    async def stream(request: web.Request) -> web.StreamResponse:
        settings = {"heartbeat": 60.0, "patience": 5.0, **options}
        return await stream_sse(request, subscription, **settings)  # type: ignore[arg-type]

    app = web.Application()
    app.add_routes([web.post("/", stream), web.get("/", stream)])
    return app


async def test_frames_come_in_order_after_a_first_comment(aiohttp_client: AiohttpClient) -> None:
    given = Given([chunk(1, b"a\n\n", b"b\n\n"), chunk(2)], [chunk(3, b"c\n\n", yields=True)], [chunk(4, b"d\n\n")])
    client = await aiohttp_client(serving(given))
    response = await client.post("/")
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["X-Accel-Buffering"] == "no"
    first, _, rest = (await response.read()).partition(b"\n\n")
    assert first.startswith(b":")
    assert rest == b"a\n\nb\n\nc\n\nd\n\n"


async def test_the_comment_does_not_wait_for_the_first_frame(aiohttp_client: AiohttpClient) -> None:
    class Later(Given):
        said = asyncio.Event()

        async def chunks(self) -> Sequence[Chunk]:
            await self.said.wait()
            return await super().chunks()

    given = Later([chunk(1, b"a\n\n", yields=True)])
    client = await aiohttp_client(serving(given, until_yield=True))
    async with asyncio.timeout(30), client.get("/") as response:
        assert await response.content.readline() == b": open\n"
        given.said.set()
        assert await response.read() == b"\na\n\n"


async def test_a_head_is_answered_without_a_body(aiohttp_client: AiohttpClient) -> None:
    given = Given([chunk(1, b"a\n\n")])
    client = await aiohttp_client(serving(given))
    for _ in range(2):
        response = await client.head("/")
        assert (response.status, response.content_type, await response.read()) == (200, "text/event-stream", b"")
    assert b"a\n\n" in await (await client.get("/")).read(), "nothing was taken, and the connection is as it was"


async def test_a_turns_stream_ends_where_the_turn_yields(aiohttp_client: AiohttpClient) -> None:
    given = Given([chunk(1, b"a\n\n"), chunk(2, b"b\n\n", yields=True), chunk(3, b"c\n\n")])
    client = await aiohttp_client(serving(given, until_yield=True))
    body = await (await client.get("/")).read()
    assert body.endswith(b"a\n\nb\n\n")


async def test_a_stream_with_nothing_to_say_shows_that_it_lives(aiohttp_client: AiohttpClient) -> None:
    class Silent(Given):
        async def chunks(self) -> Sequence[Chunk]:
            await asyncio.Event().wait()
            return ()

    client = await aiohttp_client(serving(Silent(), heartbeat=0.02))
    response = await client.get("/")
    async with asyncio.timeout(30):
        seen = b""
        while seen.count(b"\n\n") < 4:
            seen += await response.content.readany()
    assert all(line.startswith(b":") for line in seen.split(b"\n\n") if line)
    response.close()


async def test_who_is_parted_with_is_told_when_to_come_again(aiohttp_client: AiohttpClient) -> None:
    given = Given([chunk(1, b"a\n\n")])
    given.is_draining = True
    client = await aiohttp_client(serving(given))
    body = await (await client.get("/")).read()
    assert b"a\n\nretry: 1000\n: " in body


async def test_who_takes_nothing_is_cut(aiohttp_client: AiohttpClient) -> None:
    class Endless(Given):
        async def chunks(self) -> Sequence[Chunk]:
            return [chunk(1, b"x" * 100_000)] * 10

    given = Endless()
    client = await aiohttp_client(serving(given, patience=0.2))
    response = await client.get("/")
    await until(lambda: given.cut_at is not None)
    response.close()
