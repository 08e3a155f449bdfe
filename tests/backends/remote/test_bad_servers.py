"""Servers of any dialect that refuse, hang, lead elsewhere or never stop: the turn fails with the right fault."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

import gateway.model as m
from gateway.backends.kinds import kind_of
from gateway.errors import BackendFailed, GatewayError, TimedOut
from gateway.ports.remote import Timeouts
from tests.adapters.aap.client import test_turn_stream as aap
from tests.adapters.blade.client import test_socketio as blade
from tests.adapters.cas.client import test_foreign_servers as cas
from tests.adapters.zenflux.client import test_remote_run as zenflux
from tests.support.backends.agui_server import Turn
from tests.support.backends.turn_driver import play
from tests.support.client.byte_server import ReceivedRequest, Server, chunk, hangs, head, says, serving
from tests.support.dialect_tables import DIALECTS
from tests.support.dialects.zenflux.cutting_proxy import remote, scripted_server


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def failed(dialect: str, url: str, **patience: Any) -> GatewayError:
    settings = {"dialect": dialect, "url": url, "attempts": 1, "first_byte_seconds": 20, "idle_seconds": 20, **patience}
    made = kind_of("remote", Path()).make(settings, Path())
    try:
        with pytest.raises(GatewayError) as caught:
            async with asyncio.timeout(50):
                await play(made, Turn("Hi"))
    finally:
        await made.close()
    return caught.value


async def test_nobody_is_there(dialect: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await failed(dialect, f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert "cannot be reached" in error.message
    assert (error.fault.code, error.fault.retryable) == (m.FaultCode.BACKEND, True)


async def test_a_redirect_to_another_host_is_not_followed(dialect: str) -> None:
    async with serving(says(b"{}")) as other, serving(says(b"", 307, Location=other.url)) as server:
        error = await failed(dialect, server.url)
        assert (other.asked, other.connections) == ([], 0)
    assert "with a redirect, which is not followed" in error.message and error.fault.code is m.FaultCode.BACKEND


async def test_a_certificate_that_does_not_verify(dialect: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with serving(says(b"{}"), tls=context) as server:
        error = await failed(dialect, server.url)
        assert server.asked == []
    assert "its certificate does not verify" in error.message and error.fault.code is m.FaultCode.BACKEND


async def test_one_that_hangs_before_its_first_byte(dialect: str) -> None:
    async with serving(hangs(Server())) as server:
        error = await failed(dialect, server.url, first_byte_seconds=0.2)
    assert type(error) is TimedOut and error.fault.code is m.FaultCode.TIMEOUT


# -- a line of a hundred megabytes ------------------------------------------------------------------------------------

PATIENT = Timeouts(connect=30, first_byte=30, idle=30, total=60, attempts=1)


async def endless(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
    """A stream with a line that does not end."""
    writer.write(head() + chunk(b"data: "))
    for _ in range(100):
        writer.write(chunk(b"x" * 1_000_000))
        await writer.drain()


async def from_aap() -> None:
    async with serving(aap.META, aap.MADE, endless, says(b"{}", 404)) as server:
        await aap.hear(server, PATIENT)


async def from_cas() -> None:
    raise await cas.failure(cas.ScriptedServer(stream=[endless]), PATIENT)


async def from_blade() -> None:
    await blade.hear(blade.saying("42" + "x" * 100_000_000), PATIENT)


async def from_zenflux() -> None:
    script = zenflux.saying(zenflux.event("message_start"), zenflux.raw("x" * 100_000_000))
    async with scripted_server(script) as server, remote(server.address, PATIENT) as there:
        async for _ in there.start_turn("conversation", zenflux.HELLO):
            pass


LONG: dict[str, tuple[Callable[[], Awaitable[None]], str]] = {
    "aap": (from_aap, "an event of more than"), "cas": (from_cas, "an event of more than"),
    "blade": (from_blade, "rules of websockets"),
    "zenflux": (from_zenflux, "not a WebSocket frame"),
}


async def test_a_line_of_a_hundred_megabytes(dialect: str) -> None:
    hear, words = LONG[dialect]
    with pytest.raises(BackendFailed, match=words) as caught:
        await hear()
    assert caught.value.fault.code is m.FaultCode.BACKEND
