"""The HTTP client of a simulated world sends what it is told to send, and nothing more."""

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.prove.simulation.conversation import http_client


async def test_a_request_whose_connection_breaks_is_not_sent_again() -> None:
    methods: list[str] = []

    async def break_off(request: web.Request) -> web.Response:
        methods.append(request.method)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/session", break_off)
    async with TestServer(app) as server, http_client() as http:
        for method in ("GET", "DELETE", "POST"):
            with pytest.raises(aiohttp.ClientConnectionError):
                await http.request(method, server.make_url("/session"))
    assert methods == ["GET", "DELETE", "POST"]
