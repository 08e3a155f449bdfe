"""The socket itself: what it sends, what it takes, and how long it waits."""

import pytest

from adapters.zenflux.client.websocket import WebSocketConnection, WebSocketConnector, backoff
from gateway.client import HttpClient
from gateway.errors import BackendFailed, ConnectionLost
from tests.support.dialects.zenflux.cutting_proxy import API, SHORT, ScriptedConnection, scripted_server


async def opened(address: str) -> tuple[WebSocketConnector, HttpClient, WebSocketConnection]:
    upstream = HttpClient(f"{address}{API}", timeouts=SHORT)
    sockets = WebSocketConnector(upstream, {})
    return sockets, upstream, await sockets.open()


async def test_requests_have_ids_and_frames_are_parsed() -> None:
    async def script(talking: ScriptedConnection) -> None:
        request = await talking.hear()
        await talking.ws.send_json({"type": "res", "id": request["id"], "ok": True})
        await talking.ws.send_bytes(b'{"type": "pong"}')
        await talking.hear()

    async with scripted_server(script) as server:
        sockets, upstream, line = await opened(server.address)
        try:
            request_id = await line.ask("chat.send", message="hi")
            assert await line.next(20) == {"type": "res", "id": request_id, "ok": True}
            assert await line.next(20) == {"type": "pong"}
            with pytest.raises(TimeoutError):
                await line.next(0.01)
            assert await line.ask("chat.abort") != request_id
            with pytest.raises(ConnectionLost, match="closed the connection"):
                await line.next(20)
            with pytest.raises(BackendFailed):
                await line.ask("chat.send")
        finally:
            await line.close()
            await sockets.close()
            await upstream.close()


def test_waits_grow() -> None:
    assert all(backoff(attempt) < backoff(attempt + 2) for attempt in range(5))
