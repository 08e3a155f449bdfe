"""Who is asking: every route is guarded unless it says otherwise."""

from datetime import UTC, datetime

import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from gateway.errors import GatewayError, Unauthenticated
from gateway.http import ANONYMOUS, CALLER, OWNER, Authenticator, ErrorMiddleware, admins_only, current_caller, public
from gateway.ports import Caller
from gateway.ports.keys import Key


class Keys:
    async def verify(self, token: str, address: str) -> Key | None:
        user = {"good": "ann", "better": "ben"}.get(token)
        return user and Key(name=token, user=user, hash=f"hash of {token}", created=datetime.now(UTC))


class Tokens:
    async def verify(self, token: str) -> Caller:
        if token != "a.b.c":
            raise Unauthenticated("the token is not good")
        return Caller(user="cay", credential="oidc:1", key="https://issuer", expires=5.0)


async def whoami(request: web.Request) -> web.Response:
    return web.Response(text=f"<{request[OWNER]}>")


@public
async def anyone(request: web.Request) -> web.Response:
    return web.Response(text="hello")


def spell(path: str, error: GatewayError) -> tuple[int, object]:
    return error.code.status, {"error": error.message}


def app(keys: Keys | None) -> web.Application:
    made = web.Application(middlewares=[ErrorMiddleware(spell).middleware, Authenticator(keys).middleware])
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
        assert await (await client.get("/me", headers=headers)).text() == f"<{ANONYMOUS}>"


async def test_a_path_that_does_not_exist_is_not_found_even_without_a_key(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(app(Keys()))
    assert (await client.get("/nowhere")).status == 404


async def test_a_guard_can_be_asked_directly() -> None:
    guard = Authenticator(Keys(), admins=lambda: ["ben"])
    assert await guard.authenticate("good", "1.2.3.4") == Caller(
        user="ann", credential="hash of good", key="good", address="1.2.3.4", role="user")
    assert (await guard.authenticate("better")).is_admin
    for token, reason in ((None, "a key is required"), ("bad", "unknown key"), ("a.b.c", "unknown key")):
        with pytest.raises(Unauthenticated, match=reason):
            await guard.authenticate(token)


async def test_keys_and_tokens_open_side_by_side_and_alone() -> None:
    both = Authenticator(Keys(), Tokens(), admins=lambda: ["cay"])
    assert [(await both.authenticate(token)).user for token in ("good", "a.b.c")] == ["ann", "cay"]
    cay = await both.authenticate("a.b.c", "1.2.3.4")
    assert (cay.role, cay.address, cay.expires) == ("admin", "1.2.3.4", 5.0)
    with pytest.raises(Unauthenticated, match="the token is not good"):
        await both.authenticate("x.y.z")
    with pytest.raises(Unauthenticated, match="unknown key"):
        await Authenticator(None, Tokens()).authenticate("good")


@admins_only
async def everybodys(request: web.Request) -> web.Response:
    return web.Response(text=f"{request[CALLER].role} {current_caller() == request[CALLER]}")


async def test_what_is_everybodys_is_for_admins(aiohttp_client: AiohttpClient) -> None:
    for guard, token, expected in (
        (Authenticator(Keys(), admins=lambda: ["ben"]), "good", 403),
        (Authenticator(Keys(), admins=lambda: ["ben"]), "better", 200),
        (Authenticator(Keys()), "better", 403),
        (Authenticator(None), "", 200),
    ):
        made = web.Application(middlewares=[ErrorMiddleware(spell).middleware, guard.middleware])
        made.add_routes([web.get("/all", everybodys)])
        client = await aiohttp_client(made)
        response = await client.get("/all", headers={"Authorization": f"Bearer {token}"})
        assert response.status == expected
        if expected == 200:
            assert await response.text() == "admin True"
        else:
            assert "list the user" in (await response.json())["error"]
        assert len(guard.open_requests) == 0, "what has ended is not held"
