"""The socket itself: what it sends, what it takes, and how long it waits."""

import pytest

from adapters.zenflux.remote_socket import Line, Sockets, backoff
from gateway.errors import BackendFailed
from gateway.upstream import Cut, Upstream
from tests.support.adapters.zenflux_cut_lines import API, SHORT, Talking, stranger


async def opened(address: str) -> tuple[Sockets, Upstream, Line]:
    upstream = Upstream(f"{address}{API}", patience=SHORT)
    sockets = Sockets(upstream, {}, ())
    return sockets, upstream, await sockets.open()


async def test_requests_have_ids_and_frames_are_parsed() -> None:
    async def script(talking: Talking) -> None:
        request = await talking.hear()
        await talking.ws.send_json({"type": "res", "id": request["id"], "ok": True})
        await talking.ws.send_bytes(b'{"type": "pong"}')
        await talking.hear()

    async with stranger(script) as server:
        sockets, upstream, line = await opened(server.address)
        try:
            request_id = await line.ask("chat.send", message="hi")
            assert await line.next(20) == {"type": "res", "id": request_id, "ok": True}
            assert await line.next(20) == {"type": "pong"}
            with pytest.raises(TimeoutError):
                await line.next(0.01)
            assert await line.ask("chat.abort") != request_id
            with pytest.raises(Cut, match="hung up"):
                await line.next(20)
            with pytest.raises(BackendFailed):
                await line.ask("chat.send")
        finally:
            await line.close()
            await sockets.close()
            await upstream.close()


def test_waits_grow() -> None:
    assert all(backoff(attempt) < backoff(attempt + 2) for attempt in range(5))
