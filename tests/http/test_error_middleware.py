"""Every error becomes an answer in the right shape, and mistakes of ours tell clients nothing."""

import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient
from structlog.testing import capture_logs

from gateway.errors import Conflict, GatewayError, TooLarge
from gateway.http import ErrorMiddleware


def spell(path: str, error: GatewayError) -> tuple[int, object]:
    return error.code.status, {"code": error.code, "told": error.message}


@pytest.fixture
async def client(aiohttp_client: AiohttpClient):
    async def refuse(request: web.Request) -> web.Response:
        raise Conflict("not now")

    async def large(request: web.Request) -> web.Response:
        raise TooLarge("too much")

    async def broken(request: web.Request) -> web.Response:
        raise RuntimeError("the password is 1234")

    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPFound("/elsewhere")

    app = web.Application(middlewares=[ErrorMiddleware(spell).middleware])
    app.add_routes([web.get("/refuse", refuse), web.get("/large", large), web.get("/broken", broken),
                    web.get("/moved", moved)])
    return await aiohttp_client(app)


@pytest.mark.parametrize(("path", "status", "code", "told"), [
    ("/refuse", 409, "conflict", "not now"),
    ("/large", 413, "too_large", "too much"),
    ("/nowhere", 404, "not_found", "there is nothing at /nowhere"),
])
async def test_an_error_is_answered_with_its_status_and_words(client, path, status, code, told) -> None:
    response = await client.get(path)
    assert response.status == status
    assert await response.json() == {"code": code, "told": told}


async def test_a_wrong_method_says_which_are_right(client) -> None:
    response = await client.post("/refuse")
    assert response.status == 405
    assert response.headers["Allow"] == "GET,HEAD"
    assert (await response.json())["told"] == "POST is not possible here; possible: GET, HEAD"


async def test_a_mistake_of_ours_is_logged_and_not_told(client) -> None:
    with capture_logs() as logged:
        response = await client.get("/broken")
    assert response.status == 500
    assert "1234" not in await response.text()
    assert logged[0]["event"] == "request_failed"
    assert logged[0]["exc_info"]


async def test_a_redirect_is_no_error(client) -> None:
    response = await client.get("/moved", allow_redirects=False)
    assert response.status == 302
