"""How a connection is made, or is not: nobody is trusted without reason, waited for without end, or left behind."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from gateway.client import HttpClient
from gateway.errors import BackendFailed, ConnectionLost, TimedOut
from gateway.ports.remote import Timeouts
from tests.support.client.counting_server import LOOPS, Make, answer, counting_server, gone, request, run, says
from tests.support.gateway_server import until

SLOW = Timeouts(connect=30, first_byte=30, idle=30, total=60, attempts=1)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """No word of TLS."""
    return


@contextmanager
def full() -> Iterator[str]:
    """A server that takes no more connections."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        before = list[socket.socket]()
        for _ in range(4):
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
            before.append(waiting)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        for waiting in before:
            waiting.close()


def handles() -> int:
    """How many sockets this process has open."""
    return sum(path.is_socket() for path in Path("/proc/self/fd").iterdir())


@LOOPS
@pytest.mark.parametrize("way", ["called away", "time is up"])
def test_while_a_connection_is_made(make: Make, way: str) -> None:
    async def work() -> None:
        with full() as url:
            await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)  # whoever does that is there from now on
            before = handles()
            upstream = HttpClient(url, timeouts=Timeouts(connect=0.2 if way == "time is up" else 30, attempts=1))
            task = asyncio.ensure_future(upstream.json("GET", "/"))
            await until(lambda: handles() > before or task.done())
            if way == "called away":
                task.cancel()
            with pytest.raises((TimedOut, asyncio.CancelledError)):
                await task
            await until(lambda: handles() <= before)
            await upstream.close()

    run(make, work())


@LOOPS
@pytest.mark.parametrize("way", ["called away", "time is up"])
def test_while_a_secret_is_agreed_on(make: Make, way: str) -> None:
    async def work() -> None:
        async with counting_server(silent) as server:
            patience = Timeouts(connect=0.2 if way == "time is up" else 30, attempts=1)
            upstream = HttpClient(server.url.replace("http:", "https:"), timeouts=patience)
            task = asyncio.ensure_future(upstream.json("GET", "/"))
            await until(lambda: server.open == 1)
            if way == "called away":
                task.cancel()
            with pytest.raises((TimedOut, asyncio.CancelledError)):
                await task
            await gone(server, upstream)

    run(make, work())


@LOOPS
def test_a_connection_that_is_made_too_late(make: Make) -> None:
    """All was closed in the meantime."""
    async def work() -> None:
        async with counting_server(says(answer())) as server:
            upstream = HttpClient(server.url, timeouts=SLOW)
            task = asyncio.ensure_future(upstream.json("POST", "/"))
            await asyncio.sleep(0)
            await upstream.close()
            with pytest.raises(ConnectionLost):
                await task
            await until(lambda: server.open == 0)

    run(make, work())


@LOOPS
def test_who_cannot_be_trusted(make: Make) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.test").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def work() -> None:
        before = handles()
        async with counting_server(says(answer()), tls=context) as server:
            for trusted in (None, trusting):
                upstream = HttpClient(server.url, timeouts=SLOW, ssl=trusted)
                with pytest.raises(BackendFailed, match="its certificate does not verify") as caught:
                    await upstream.json("GET", "/")
                assert not caught.value.retryable and not upstream._pool._connections
            assert server.connections == 0, "nobody got so far as to ask"
        await until(lambda: handles() <= before)

    run(make, work())


@LOOPS
def test_a_long_request_in_secret_and_another_on_the_same_wire(make: Make) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    lengths = list[int]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            lengths.append(len((await request(reader))[1]))
            writer.write(answer())

    async def work() -> None:
        async with counting_server(talk, tls=context) as server:
            upstream = HttpClient(server.url, timeouts=SLOW, ssl=trusting)
            assert await upstream.json("POST", "/", "x" * 8_000_000) == 1
            assert await upstream.json("POST", "/", "x") == 1
            assert (lengths, server.connections) == ([8_000_002, 3], 1)
            await upstream.close()
            await gone(server, upstream)

    run(make, work())
