"""Every answer to a listed page says that the page may read it; an answer to any other says nothing."""

from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from gateway.http import AllowList, TrustedProxies, add_cors_headers
from gateway.http.security.origin_policy import OriginPolicy

APP = "https://app.example"
PREFLIGHT = {"Origin": APP, "Access-Control-Request-Method": "PUT"}


def serving(*origins: str) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("broken"):
            raise web.HTTPConflict
        return web.Response(text="here")

    policy = OriginPolicy(AllowList(origins=origins), TrustedProxies())
    app = web.Application(middlewares=[policy.middleware])
    app.on_response_prepare.append(add_cors_headers)
    app.add_routes([web.get("/{path:.+}", answer)])
    return app


async def test_answers_and_errors_are_marked(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving(APP))
    for path in ("/x", "/broken"):
        answer = await client.get(path, headers={"Origin": APP})
        assert answer.headers["Access-Control-Allow-Origin"] == APP
    assert "Access-Control-Allow-Origin" not in (await client.get("/x")).headers


async def test_a_preflight_asks_for_headers_only_if_it_names_some(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving(APP))
    answer = await client.options("/x", headers=PREFLIGHT)
    assert (answer.status, "Access-Control-Allow-Headers" in answer.headers) == (204, False)
    answer = await client.options("/x", headers={**PREFLIGHT, "Access-Control-Request-Headers": "x-own"})
    assert answer.headers["Access-Control-Allow-Headers"] == "x-own"
    assert "PUT" in answer.headers["Access-Control-Allow-Methods"]


async def test_options_that_are_no_preflight_are_the_applications(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving(APP))
    assert (await client.options("/x", headers={"Origin": APP})).status == 405
    assert (await client.options("/x")).status == 405
