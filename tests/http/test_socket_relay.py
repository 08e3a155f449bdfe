"""The id of a Socket.IO connection names its process; only ids of other processes that live are passed on.

That whole conversations work across processes is shown by the proof `workers`.
"""

import os
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer, make_mocked_request

from gateway.http import SocketRelay
from gateway.http.security import TrustedProxies
from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401


@pytest.mark.parametrize("wrong", ["", "abc", ".abc", "1.", "x.abc", "²3.abc", f"{os.getpid()}.abc", "4194999.abc"])
async def test_an_id_of_no_other_process_is_not_passed_on(tmp_path: Path, wrong: str) -> None:
    relay = SocketRelay(tmp_path)
    try:
        assert await relay.pass_on(make_mocked_request("GET", f"/socket.io/?sid={wrong}"), wrong) is None
    finally:
        await relay.close()


async def test_a_request_reaches_its_process_with_the_address_of_the_client(tmp_path: Path) -> None:
    """The process believes the address because it comes over a Unix socket."""
    seen: list[tuple[str, str | None, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(tuple(TrustedProxies(has_workers=True).external_address(request)))
        return web.Response(text=await request.text(), headers={"X-Seen": "yes"}, status=202)

    app = web.Application()
    app.router.add_post("/socket.io/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(tmp_path / "77.http")).start()
    relay = SocketRelay(tmp_path)

    async def pass_on(request: web.Request) -> web.StreamResponse:
        passed = await relay.pass_on(request, relay_id)
        assert passed is not None
        return passed

    relay_id, front = "77.abc", web.Application()
    front.router.add_post("/socket.io/", pass_on)
    async with TestServer(front) as server, ClientSession() as client, client.post(
        server.make_url("/socket.io/?sid=77.abc"), data="40", headers={"X-Forwarded-For": "6.6.6.6", "Host": "me"},
    ) as response:
        assert (response.status, await response.text(), response.headers["X-Seen"]) == (202, "40", "yes")
    assert seen == [("http", "me", "127.0.0.1")]
    await relay.close()
    await runner.cleanup()


async def test_a_tcp_client_cannot_name_its_own_address() -> None:
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(TrustedProxies(has_workers=True).external_address(request).address)
        return web.Response()

    app = web.Application()
    app.router.add_get("/", answer)
    headers = {"X-Forwarded-For": "6.6.6.6"}
    async with TestServer(app) as server, ClientSession() as client, client.get(server.make_url("/"), headers=headers):
        assert seen == ["127.0.0.1"]
