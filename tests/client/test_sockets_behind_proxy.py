"""WebSockets and Socket.IO through a company's proxy: over TLS in a tunnel, in the clear with the whole address."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from gateway.client import HttpClient, SocketIOConnector, WebSocketConnector
from gateway.errors import BackendFailed, GatewayError, ServerUnreachable
from gateway.ports import ParsedFrame, Timeouts
from tests.support.client.forward_proxy import forward_proxy

ONCE = Timeouts(connect=10, first_byte=5, idle=5, total=20, attempts=1)
LOGIN = "dragon:s3cret-pass"


async def talk(request: web.Request) -> web.StreamResponse:
    """Repeats what it hears."""
    ws = web.WebSocketResponse()
    await ws.prepare(request)
    async for message in ws:
        await ws.send_str(message.data)
    return ws


async def engine(request: web.Request) -> web.StreamResponse:
    """The handshake of Socket.IO, and one event."""
    ws = web.WebSocketResponse()
    await ws.prepare(request)
    await ws.send_str('0{"sid":"a","pingInterval":25000,"pingTimeout":20000}')
    async for message in ws:
        if message.data.startswith("40"):
            await ws.send_str('40{"sid":"b"}')
            await ws.send_str('42["hello",{"n":1}]')
    return ws


@asynccontextmanager
async def served(scheme: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> AsyncIterator[str]:
    """A server at a name that only the proxy can find."""
    context = None
    if scheme == "https":
        authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("api.test").configure_cert(context)
        authority.cert_pem.write_to_path(folder / "authority.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    app = web.Application()
    app.add_routes([web.get("/talk", talk), web.get("/socket.io/", engine)])
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield f"{scheme}://api.test:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("login", ["", LOGIN])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_websocket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scheme: str, login: str) -> None:
    async with served(scheme, monkeypatch, tmp_path) as url, forward_proxy(monkeypatch, login) as proxy:
        upstream = HttpClient(url, timeouts=ONCE)
        sockets = WebSocketConnector(upstream, "/talk")
        line = await sockets.open()
        await line.send({"said": "hi"})
        assert await line.receive(20) == {"said": "hi"}
        await line.close()
        await sockets.close()
        await upstream.close()
    whole = f"CONNECT {url.removeprefix('https://')}" if scheme == "https" else f"GET {url}/talk"
    assert proxy.asked == [f"{whole} HTTP/1.1"]


async def test_socket_io(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with served("https", monkeypatch, tmp_path) as url, forward_proxy(monkeypatch, LOGIN) as proxy:
        sockets = SocketIOConnector(HttpClient(f"{url}/socket.io/?EIO=4", timeouts=ONCE))
        async with sockets.connect() as line:
            assert await line.receive(20) == ParsedFrame("hello", {"n": 1})
        await sockets.close()
    assert proxy.asked == [f"CONNECT {url.removeprefix('https://')} HTTP/1.1"]


@pytest.mark.parametrize(("refuses", "kind", "message"), [
    (407, BackendFailed, "refuses its user name and password (407)"), (403, BackendFailed, "does not connect to"),
    (0, ServerUnreachable, "cannot be reached through the proxy http://127.0.0.1:"),
])
async def test_a_proxy_that_does_not_help(
    monkeypatch: pytest.MonkeyPatch, refuses: int, kind: type[GatewayError], message: str,
) -> None:
    async def failure(connector: WebSocketConnector | SocketIOConnector) -> GatewayError:
        with pytest.raises(kind) as caught:
            if isinstance(connector, WebSocketConnector):
                await connector.connect()
            else:
                async with connector.connect():
                    pass
        await connector.close()
        return caught.value

    async with forward_proxy(monkeypatch, LOGIN, refuses) as proxy:
        if not refuses:
            monkeypatch.setenv("HTTPS_PROXY", f"http://{LOGIN}@127.0.0.1:1")
        upstream = HttpClient("https://api.test/socket.io/?EIO=4", timeouts=ONCE)
        for connector in (WebSocketConnector(upstream, ""), SocketIOConnector(upstream)):
            error = await failure(connector)
            assert message in error.message and "s3cret" not in str(error)
            assert f"127.0.0.1:{proxy.port if refuses else 1}" in error.message
