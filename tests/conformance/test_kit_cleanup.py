"""Clearing away: over as few connections as do, and not at all where nobody minds."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from conformance.kit.cleanup import cleared, delete_all
from conformance.kit.http import HttpClient
from conformance.kit.transcript import Transcript

PEERS: web.AppKey[list[object]] = web.AppKey("peers", list)


async def delete(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.app[PEERS].append(request.transport.get_extra_info("peername"))
    return web.Response(status=204)


async def refuse(request: web.Request) -> web.Response:
    return web.Response(status={"gone": 404, "kept": 409}.get(request.match_info["id"], 500))


async def hang(request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
def app() -> web.Application:
    app = web.Application()
    app[PEERS] = []
    app.router.add_delete("/things/{id}", delete)
    app.router.add_delete("/refusals/{id}", refuse)
    app.router.add_delete("/silence/{id}", hang)
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


async def test_what_cannot_be_deleted_is_left_behind(client: HttpClient) -> None:
    paths = ["/things/1", "/refusals/gone", "/refusals/kept", "/refusals/broken", "/things/2"]
    archived: list[str] = []

    async def archive(path: str) -> None:
        archived.append(path)

    await delete_all(client, paths, 5.0, otherwise=archive)
    assert client.transcript.left == archived == ["/refusals/kept", "/refusals/broken"]


async def test_what_took_too_long_to_delete_is_left_behind(client: HttpClient) -> None:
    await delete_all(client, ["/silence/1", "/things/1", "/things/2"], 5.0, at_once=1)
    assert client.transcript.left == ["/silence/1", "/things/1", "/things/2"]
    assert "* clearing away: took too long" in str(client.transcript)
    client.timeout = 1.0
    await delete_all(client, ["/silence/2", "/things/3"], 5.0, at_once=1)
    assert client.transcript.left[3:] == ["/silence/2"]
    assert "clearing away: expected an answer to DELETE /silence/2" in str(client.transcript)
