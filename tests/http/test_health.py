"""A server says whether it lives and whether it should be sent work."""

from typing import Any

import pytest
from aiohttp import web

from gateway.http.health import DRAIN_REQUESTED, Readiness, health_routes


@pytest.fixture
def readiness() -> Readiness:
    return Readiness()


@pytest.fixture
async def client(aiohttp_client: Any, readiness: Readiness) -> Any:
    app = web.Application()
    app.add_routes(health_routes(readiness))
    return await aiohttp_client(app)


async def seen(client: Any, path: str) -> tuple[int, str]:
    answer = await client.get(path)
    return answer.status, (await answer.json())["status"]


async def test_it_lives_whatever_it_does(client: Any, readiness: Readiness) -> None:
    assert await seen(client, "/healthz") == (200, "ok")
    readiness.mark_draining()
    assert await seen(client, "/healthz") == (200, "ok")


async def test_it_is_ready_between_its_start_and_its_end(client: Any, readiness: Readiness) -> None:
    assert await seen(client, "/readyz") == (503, "starting")
    readiness.mark_ready()
    assert await seen(client, "/readyz") == (200, "ready")
    readiness.mark_draining()
    assert await seen(client, "/readyz") == (503, "draining")


def test_what_drains_is_never_ready_again(readiness: Readiness) -> None:
    readiness.mark_draining()
    readiness.mark_ready()
    assert not readiness.is_ready


async def test_who_is_not_ready_says_why(client: Any, readiness: Readiness) -> None:
    async def reason() -> object:
        return (await (await client.get("/readyz")).json()).get("reason")

    assert await reason() == "the server starts, and loads what it has stored"
    readiness.mark_ready()
    assert await reason() is None
    readiness.mark_draining(DRAIN_REQUESTED)
    assert await reason() == "an operator has asked the server to drain: dragoman cluster drain"
