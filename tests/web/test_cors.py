"""Pages of other sites may ask where a setting says so, and nowhere else."""

import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from gateway.web import Cors


def serving() -> web.Application:
    cors = Cors(lambda path: path.startswith("/open"))

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("broken"):
            raise web.HTTPNotFound
        return web.Response(text="here")

    app = web.Application(middlewares=[cors.middleware])
    app.on_response_prepare.append(cors.mark)
    app.add_routes([web.get("/{path:.+}", answer)])
    return app


@pytest.mark.parametrize(("path", "marked"), [("/open/x", True), ("/open/broken", True), ("/shut/x", False)])
async def test_answers_and_refusals_are_marked(aiohttp_client: AiohttpClient, path: str, marked: bool) -> None:
    client = await aiohttp_client(serving())
    answer = await client.get(path)
    assert ("Access-Control-Allow-Origin" in answer.headers) is marked


async def test_the_question_beforehand_is_answered(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving())
    answer = await client.options("/open/x", headers={"Access-Control-Request-Headers": "authorization, x-own"})
    assert answer.status == 204
    assert answer.headers["Access-Control-Allow-Headers"] == "authorization, x-own"
    assert "DELETE" in answer.headers["Access-Control-Allow-Methods"]
    assert (await client.options("/shut/x")).status == 405
