"""Values of queries are read strictly, only our cursors are taken, and every request has an id."""

from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pytest_aiohttp.plugin import AiohttpClient

from gateway.config.settings import LimitSettings
from gateway.errors import Conflict, GatewayError, Invalid
from gateway.http import (
    CONNECTION_LIMITS,
    ErrorMiddleware,
    add_request_id,
    decode_cursor,
    encode_cursor,
    limit_body_size,
    parse_whole_number,
    read_bytes,
    request_id_of,
)


@pytest.mark.parametrize(("text", "number"), [
    ("0", 0), ("007", 7), ("123456789", 123456789), ("1234567890", None), ("", None), ("-1", None), ("+1", None),
    ("1.0", None), ("٩", None), ("²", None), (" 1", None), ("9" * 5000, None),
])
def test_whole_numbers(text: str, number: int | None) -> None:
    assert parse_whole_number(text) == number


def test_more_digits_are_read_where_they_are_allowed() -> None:
    assert parse_whole_number("1234567890", 15) == 1234567890


@given(st.integers(0, 2**62))
def test_a_cursor_comes_back_as_its_place(ordinal: int) -> None:
    cursor = encode_cursor(ordinal)
    assert cursor is not None
    assert decode_cursor(cursor) == ordinal
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&?# ")


def test_no_cursor_is_no_place() -> None:
    assert encode_cursor(None) is None
    assert decode_cursor(None) is None


@pytest.mark.parametrize("cursor", [
    "", "x", "12", "bm90IG91cnM", "\x00", "o12", "é", "b3h4", "bzk5OTk5OTk5OTk5OTk5OTk5OTk5", "by0x",
])
def test_what_is_not_ours_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid, match="not a cursor"):
        decode_cursor(cursor)


@given(st.text(max_size=20))
def test_any_text_is_taken_or_refused(cursor: str) -> None:
    with suppress(Invalid):
        assert isinstance(decode_cursor(cursor), int)


def spell(path: str, error: GatewayError) -> tuple[int, Any]:
    return error.code.status, {"told": error.message, "request_id": error.request_id}


@pytest.fixture
async def client(aiohttp_client: AiohttpClient) -> Any:
    async def ask(request: web.Request) -> web.Response:
        return web.json_response({"request_id": request_id_of(request)})

    async def refuse(request: web.Request) -> web.Response:
        raise Conflict("not now")

    async def take(request: web.Request) -> web.Response:
        return web.json_response({"size": len(await read_bytes(request))})

    app = web.Application(middlewares=[ErrorMiddleware(spell).middleware])
    app[CONNECTION_LIMITS] = LimitSettings
    app.on_response_prepare.append(add_request_id)
    app.add_routes(
        [web.get("/ask", ask), web.get("/refuse", refuse), *limit_body_size([web.post("/take", take)], lambda: 10)]
    )
    return await aiohttp_client(app)


@pytest.mark.parametrize("path", ["/ask", "/refuse", "/nowhere"])
async def test_a_request_keeps_its_own_id(client: Any, path: str) -> None:
    response = await client.get(path, headers={"x-request-id": "mine-1"})
    assert response.headers["X-Request-Id"] == "mine-1"
    assert (await response.json())["request_id"] == "mine-1"


@pytest.mark.parametrize("given", [None, "", "two words", "x" * 129, "ümlaut"])
async def test_a_request_without_a_fit_id_gets_a_new_one(client: Any, given: str | None) -> None:
    headers = {} if given is None else {"x-request-id": given}
    first, second = [await client.get("/refuse", headers=headers) for _ in range(2)]
    ids = [response.headers["X-Request-Id"] for response in (first, second)]
    assert ids == [(await response.json())["request_id"] for response in (first, second)]
    assert ids[0] != ids[1]
    assert all(one.startswith("req_") for one in ids)


@pytest.mark.parametrize(("size", "status"), [(0, 200), (10, 200), (11, 413)])
@pytest.mark.parametrize("in_pieces", [False, True])
async def test_a_body_is_held_to_its_limit(client: Any, size: int, status: int, in_pieces: bool) -> None:
    async def pieces() -> Any:
        for _ in range(size):
            yield b"x"

    response = await client.post("/take", data=pieces() if in_pieces else b"x" * size)
    assert response.status == status
    if status == 413:
        assert (await response.json())["told"] == "the body is larger than 10 bytes"
