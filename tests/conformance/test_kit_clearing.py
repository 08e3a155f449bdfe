"""Clearing away: over as few connections as do, and not at all where nobody minds."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from conformance.kit.clearing import cleared
from conformance.kit.http import HttpClient
from conformance.kit.transcript import Transcript

PEERS: web.AppKey[list[object]] = web.AppKey("peers", list)


async def delete(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.app[PEERS].append(request.transport.get_extra_info("peername"))
    return web.Response(status=204)


@pytest.fixture
def app() -> web.Application:
    app = web.Application()
    app[PEERS] = []
    app.router.add_delete("/things/{id}", delete)
    return app


@pytest.fixture
async def client(app: web.Application) -> AsyncIterator[HttpClient]:
    connector = aiohttp.TCPConnector(force_close=True)
    async with TestServer(app) as server, aiohttp.ClientSession(connector=connector) as session:
        yield HttpClient(session, str(server.make_url("")).rstrip("/"), Transcript(), timeout=30)


async def delete_three(client: HttpClient) -> None:
    for number in range(3):
        await client.ask("DELETE", f"/things/{number}")


async def test_what_is_cleared_away_goes_over_one_connection(app: web.Application, client: HttpClient) -> None:
    await delete_three(client)
    assert len(set(app[PEERS])) == 3
    app[PEERS].clear()
    await cleared(client, lambda: delete_three(client))
    assert (len(app[PEERS]), len(set(app[PEERS]))) == (3, 1)
    assert "* clearing away" in str(client.transcript)


async def test_where_nobody_minds_all_is_left(app: web.Application, client: HttpClient) -> None:
    client.is_disposable = True
    await cleared(client, lambda: delete_three(client))
    assert app[PEERS] == []
    assert client.transcript.entries == []
