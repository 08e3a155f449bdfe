"""Servers of any dialect that refuse, hang, lead elsewhere or never stop: the turn fails with the right fault."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

import gateway.model as m
from gateway.backends.kinds import BackendContext, kind_of
from gateway.errors import BackendFailed, GatewayError, TimedOut
from gateway.ports.remote import Timeouts
from tests.support.backends.agui_server import Turn
from tests.support.backends.turn_driver import play
from tests.support.client.byte_server import Server, hangs, says, serving
from tests.support.dialect_parts import each, part
from tests.support.dialect_tables import DIALECTS


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def failed(dialect: str, url: str, **patience: Any) -> GatewayError:
    settings = {"dialect": dialect, "url": url, "attempts": 1, "first_byte_seconds": 20, "idle_seconds": 20, **patience}
    made = kind_of("remote", Path()).make(settings, BackendContext(Path())).backend
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


@pytest.mark.parametrize("dialect", each("endless_server"))
async def test_a_line_of_a_hundred_megabytes(dialect: str) -> None:
    bad = part(dialect, "endless_server")
    with pytest.raises(BackendFailed, match=bad.FAILURE) as caught:
        await bad.hear(PATIENT)
    assert caught.value.fault.code is m.FaultCode.BACKEND
