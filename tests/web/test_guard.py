"""Who is asking: every route is guarded unless it says otherwise."""

import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from gateway.errors import GatewayError, Unauthenticated
from gateway.web import NOBODY, OWNER, Guard, Refusals, public


class Keys:
    def verify(self, token: str) -> str | None:
        return {"good": "ann"}.get(token)


async def whoami(request: web.Request) -> web.Response:
    return web.Response(text=f"<{request[OWNER]}>")


@public
async def anyone(request: web.Request) -> web.Response:
    return web.Response(text="hello")


def app(keys: Keys | None) -> web.Application:
    def spell(path: str, error: GatewayError) -> tuple[int, object]:
        return error.code.status, {"error": error.message}

    made = web.Application(middlewares=[Refusals(spell).middleware, Guard(keys).middleware])
    made.add_routes([web.get("/me", whoami), web.get("/open", anyone)])
    return made


@pytest.mark.parametrize(("header", "status"), [
    (None, 401), ("", 401), ("Bearer", 401), ("Bearer ", 401), ("Bearer bad", 401), ("Basic good", 401),
    ("Bearer good", 200), ("bearer good", 200),
])
async def test_only_a_known_key_gets_in(aiohttp_client: AiohttpClient, header: str | None, status: int) -> None:
    client = await aiohttp_client(app(Keys()))
    response = await client.get("/me", headers={"Authorization": header} if header is not None else {})
    assert response.status == status
    if status == 200:
        assert await response.text() == "<ann>"
    else:
        assert "key" in (await response.json())["error"]


async def test_a_public_route_asks_nobody(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(app(Keys()))
    assert (await client.get("/open")).status == 200


async def test_without_keys_everybody_is_the_same_and_tokens_are_ignored(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(app(None))
    for headers in ({}, {"Authorization": "Bearer whatever"}):
        assert await (await client.get("/me", headers=headers)).text() == f"<{NOBODY}>"


async def test_a_path_that_does_not_exist_is_not_found_even_without_a_key(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(app(Keys()))
    assert (await client.get("/nowhere")).status == 404


def test_a_guard_can_be_asked_directly() -> None:
    assert Guard(Keys()).owner_of("good") == "ann"
    with pytest.raises(Unauthenticated):
        Guard(Keys()).owner_of(None)
