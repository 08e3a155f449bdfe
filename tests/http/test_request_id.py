"""Every answer names its request, errors and streams included; bodies can be held to a lower limit."""

from typing import Any

import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from gateway.config.settings import LimitSettings
from gateway.errors import Conflict, GatewayError
from gateway.http import CONNECTION_LIMITS, ErrorMiddleware, add_request_id, limit_body_size, read_bytes, request_id_of


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
