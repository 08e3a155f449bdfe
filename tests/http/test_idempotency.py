"""Requests that may come twice: one is carried out, both get its answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.config.settings import LimitSettings
from gateway.errors import Conflict, GatewayError, Invalid, OutcomeUnknown, Overloaded
from gateway.http import CONNECTION_LIMITS, OWNER, ErrorMiddleware, Idempotency
from gateway.http.file_transfer import FORM_DIGEST, digest_form
from gateway.ports import IdempotencyKey, StoredResponse
from gateway.storage import Database
from gateway.storage.resources.responses import MemoryResponses, ResponseLimits, SqliteResponses
from tests.support.gateway_server import until

KEY = {"Idempotency-Key": "k"}


class Now:
    at = 0.0

    def __call__(self) -> float:
        return self.at


class Place:
    """A server with one thing to do, that counts how often it did it."""

    def __init__(self, **bounds: Any) -> None:
        self.now = Now()
        self.answers = MemoryResponses(self.now, ResponseLimits(**bounds))
        self.once = Idempotency(self.answers)
        self.came = self.done = 0
        self.answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = self._made
        self.client: TestClient[web.Request, web.Application]

    @web.middleware
    async def count(self, request: web.Request, handler: Any) -> Any:
        self.came += 1
        return await handler(request)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.done += 1
        return await self.answer(request)

    async def _made(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"number": self.done}, status=201)

    async def post(self, body: Any = b"{}", path: str = "/a", **headers: str) -> tuple[int, bytes, bool]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()} or KEY
        async with self.client.post(path, data=body, headers=sent) as response:
            return response.status, await response.read(), "Idempotent-Replayed" in response.headers


@web.middleware
async def owned(request: web.Request, handler: Any) -> Any:
    request[OWNER] = request.headers.get("Who", "")
    return await handler(request)


async def serve(place: Place) -> AsyncIterator[Place]:
    refusals = ErrorMiddleware(lambda path, error: (error.code.status, {"error": error.message}))
    app = web.Application(middlewares=[refusals.middleware, owned, place.count])
    app[CONNECTION_LIMITS] = LimitSettings
    app.add_routes(place.once.routes([
        web.post("/a", place.handle), web.post("/b", place.handle), web.delete("/a", place.handle),
        web.get("/a", place.handle), web.put("/a", place.handle),
    ]))
    async with TestClient(TestServer(app)) as place.client:
        yield place


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async for served in serve(Place()):
        yield served


async def test_the_second_gets_the_answer_of_the_first(place: Place) -> None:
    assert await place.post() == (201, b'{"number": 1}', False)
    assert await place.post() == (201, b'{"number": 1}', True)
    assert await place.post(X_Idempotency_Key="k") == (201, b'{"number": 1}', True)
    assert place.done == 1


async def test_without_a_key_everything_is_done_each_time(place: Place) -> None:
    for _ in range(2):
        await place.post(Other="x")
    assert (place.done, len(place.answers)) == (2, 0)


async def test_the_same_key_for_another_body_is_a_conflict(place: Place) -> None:
    await place.post(b'{"a":1}')
    assert (await place.post(b'{"a":2}'))[0] == 409
    assert (await place.post(b'{"a":1}', path="/a?x=1"))[0] == 409
    assert place.done == 1


async def test_a_key_is_the_owners_and_the_paths(place: Place) -> None:
    await place.post()
    await place.post(path="/b")
    await place.post(Idempotency_Key="k", Who="somebody")
    async with place.client.delete("/a", headers=KEY) as response:
        assert response.status == 201
    assert place.done == 4


async def test_reading_and_putting_are_never_repeated(place: Place) -> None:
    for method in ("GET", "PUT"):
        for _ in range(2):
            async with place.client.request(method, "/a", headers=KEY):
                pass
    assert place.done == 4


async def test_one_that_comes_while_the_first_runs_waits_for_it(place: Place) -> None:
    going, running = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        running.set()
        await going.wait()
        return web.json_response({"n": place.done})

    place.answer = slow
    calls = [asyncio.create_task(place.post())]
    await running.wait()
    calls += [asyncio.create_task(place.post()) for _ in range(5)]
    other = await place.post(b"other")
    going.set()
    answers = await asyncio.gather(*calls)
    assert [body for _, body, _ in answers] == [b'{"n": 1}'] * 6
    assert [replayed for *_, replayed in answers] == [False, True, True, True, True, True]
    assert (other[0], place.done) == (409, 1)


async def test_a_client_that_hangs_up_finds_the_answer_when_it_comes_back(place: Place) -> None:
    going, running, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        running.set()
        await going.wait()
        over.set()
        return web.json_response({"n": place.done})

    place.answer = slow
    call = asyncio.create_task(place.post())
    await running.wait()
    call.cancel()
    going.set()
    await over.wait()
    assert await place.post() == (200, b'{"n": 1}', True)
    assert place.done == 1


@pytest.mark.parametrize("error", [GatewayError("broken"), Invalid("no"), Conflict("busy"), ZeroDivisionError()])
async def test_what_was_not_carried_out_may_be_tried_again(place: Place, error: Exception) -> None:
    async def refuse(request: web.Request) -> web.StreamResponse:
        raise error

    place.answer = refuse
    assert (await place.post())[0] >= 400
    assert len(place.answers) == 0
    place.answer = place._made
    assert await place.post(b"mended") == (201, b'{"number": 2}', False)


async def test_an_error_that_is_answered_and_not_raised_is_not_kept_either(place: Place) -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        return web.json_response({}, status=503)

    place.answer = fail
    for _ in range(2):
        assert (await place.post())[0] == 503
    assert place.done == 2


async def test_waiting_for_one_that_fails_means_to_be_next(place: Place) -> None:
    going, running = asyncio.Event(), asyncio.Event()

    async def first_fails(request: web.Request) -> web.StreamResponse:
        if place.done == 1:
            running.set()
            await going.wait()
            raise GatewayError("broken")
        return web.json_response({"n": place.done})

    place.answer = first_fails
    first = asyncio.create_task(place.post())
    await running.wait()
    others = [asyncio.create_task(place.post()) for _ in range(3)]
    going.set()
    assert (await first)[0] == 500
    assert [answer[:2] for answer in await asyncio.gather(*others)] == [(200, b'{"n": 2}')] * 3


async def test_a_stream_is_never_kept(place: Place) -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        return response

    place.answer = stream
    for _ in range(2):
        assert await place.post() == (200, b"x", False)
    assert (place.done, len(place.answers)) == (2, 0)


async def test_an_answer_without_a_body_is_given_again(place: Place) -> None:
    async def nothing(request: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    place.answer = nothing
    assert await place.post() == (204, b"", False)
    assert await place.post() == (204, b"", True)


async def test_a_key_that_is_too_long_is_refused(place: Place) -> None:
    assert (await place.post(Idempotency_Key="k" * 256))[0] == 400
    assert (await place.post(Idempotency_Key="k" * 255))[0] == 201


def test_what_is_wrapped_is_not_wrapped_again() -> None:
    place = Place()
    routes = place.once.routes([web.post("/a", place.handle)])
    assert Idempotency(place.answers).routes(routes) == routes


# -- bounds -----------------------------------------------------------------------------------------------------------

async def test_old_answers_are_forgotten() -> None:
    async for place in serve(Place(seconds=60)):
        await place.post()
        place.now.at = 61
        assert await place.post() == (201, b'{"number": 2}', False)


async def test_the_oldest_answers_make_room() -> None:
    async for place in serve(Place(most=3)):
        for key in "abcd":
            await place.post(Idempotency_Key=key)
        assert len(place.answers) == 3
        assert (await place.post(Idempotency_Key="d"))[2]
        assert not (await place.post(Idempotency_Key="a"))[2]


async def test_large_answers_make_room_sooner() -> None:
    async for place in serve(Place(most_bytes=100)):
        async def large(request: web.Request) -> web.StreamResponse:
            return web.Response(body=b"x" * 60)

        place.answer = large
        for key in "abcdef":
            await place.post(Idempotency_Key=key)
        assert len(place.answers) <= 2


# -- a server that comes back -----------------------------------------------------------------------------------------

class Slow:
    """A place for answers where looking and keeping take as long as the test wants."""

    def __init__(self, answers: MemoryResponses) -> None:
        self.answers = answers
        self.claim, self.release = answers.claim, answers.release
        self.found, self.keeping, self.kept = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def find(self, place: IdempotencyKey) -> StoredResponse | None:
        answer = await self.answers.find(place)
        await self.found.wait()
        return answer

    async def store(self, place: IdempotencyKey, answer: StoredResponse) -> None:
        self.keeping.set()
        await self.kept.wait()
        await self.answers.store(place, answer)


async def test_an_answer_outlives_the_server(tmp_path: Path) -> None:
    done = []
    for life in range(3):
        database = Database(tmp_path / "dragoman.db")
        await database.open()
        async for place in serve(Place()):
            place.once._answers = SqliteResponses(database, place.now)
            done.append(await place.post(b'{"same":1}'))
            assert (await place.post(b'{"other":1}'))[0] == 409
            assert place.done == (1 if life == 0 else 0)
        await database.close()
    assert done == [(201, b'{"number": 1}', False), (201, b'{"number": 1}', True), (201, b'{"number": 1}', True)]


async def test_nobody_is_answered_before_the_answer_is_kept(place: Place) -> None:
    place.once._answers = slow = Slow(place.answers)
    slow.found.set()
    calls = [asyncio.create_task(place.post()) for _ in range(3)]
    await slow.keeping.wait()
    await until(lambda: place.came == 3)
    assert (place.done, [call.done() for call in calls]) == (1, [False] * 3)
    slow.kept.set()
    assert sorted(replayed for *_, replayed in await asyncio.gather(*calls)) == [False, True, True]


async def test_of_many_that_look_at_once_one_is_carried_out(place: Place) -> None:
    place.once._answers = slow = Slow(place.answers)
    slow.kept.set()
    calls = [asyncio.create_task(place.post()) for _ in range(5)]
    await until(lambda: place.came == 5)
    assert place.done == 0
    slow.found.set()
    assert {body for _, body, _ in await asyncio.gather(*calls)} == {b'{"number": 1}'}
    assert place.done == 1


async def test_another_request_with_the_key_does_not_spoil_it_for_the_right_one(place: Place) -> None:
    """While it is looked up whose the key is, nobody is refused who turns out to be right."""
    await place.post(b"right")
    place.once._answers = slow = Slow(place.answers)
    wrong = asyncio.create_task(place.post(b"wrong"))
    await until(lambda: place.came == 2)
    right = asyncio.create_task(place.post(b"right"))
    await until(lambda: place.came == 3)
    slow.found.set()
    assert (await wrong)[0] == 409
    assert await right == (201, b'{"number": 1}', True)
    assert place.done == 1


async def test_what_was_done_is_told_even_if_its_answer_cannot_be_kept(place: Place) -> None:
    class Full(Slow):
        async def store(self, place: IdempotencyKey, answer: StoredResponse) -> None:
            raise Overloaded("nothing can be stored just now")

    place.once._answers = full = Full(place.answers)
    full.found.set()
    assert await place.post() == (201, b'{"number": 1}', False)
    assert await place.post() == (201, b'{"number": 2}', False)


async def test_nobody_is_answered_if_nobody_knows_whether_the_answer_is_kept(place: Place) -> None:
    """Neither whoever sent the request, nor those who wait for its response."""
    storing, running = asyncio.Event(), asyncio.Event()

    class CutOff(Slow):
        async def store(self, place: IdempotencyKey, answer: StoredResponse) -> None:
            running.set()
            await storing.wait()
            raise OutcomeUnknown("Redis cannot be reached")

    place.once._answers = cut_off = CutOff(place.answers)
    cut_off.found.set()
    calls = [asyncio.create_task(place.post())]
    await running.wait()
    calls += [asyncio.create_task(place.post()) for _ in range(2)]
    await until(lambda: place.came == 3)
    storing.set()
    assert [status for status, *_ in await asyncio.gather(*calls)] == [504, 504, 504]
    assert place.done == 1


async def test_a_key_that_is_no_text_is_refused(place: Place) -> None:
    reader, writer = await asyncio.open_connection(place.client.host, place.client.port)
    writer.write(b"POST /a HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\xff\r\nContent-Length: 2\r\n\r\n{}")
    assert b" 400 " in await reader.readline()
    writer.close()
    assert place.done == 0


# -- forms ------------------------------------------------------------------------------------------------------------

def form(content: bytes, name: str = "x") -> aiohttp.FormData:
    made = aiohttp.FormData()
    made.add_field("file", content, filename=name)
    return made


async def test_a_form_is_compared_by_what_is_in_it(place: Place) -> None:
    async def take(request: web.Request) -> web.StreamResponse:
        request[FORM_DIGEST] = await digest_form(request)
        return web.json_response({"n": place.done})

    place.answer = take
    assert await place.post(form(b"abc")) == (200, b'{"n": 1}', False)
    assert await place.post(form(b"abc")) == (200, b'{"n": 1}', True)
    assert (await place.post(form(b"abd")))[0] == 409
    assert (await place.post(form(b"abc", "y")))[0] == 409
    assert place.done == 1
