"""The wires to one server: used again while they last, opened anew where they do not, never led astray by a header."""

import asyncio
from collections.abc import Mapping

import pytest
from yarl import URL

from gateway.client.transport import connection_pool
from gateway.client.transport.connection_pool import ConnectionPool
from gateway.errors import BackendFailed, ConnectionLost, ServerUnreachable
from gateway.errors import ConnectionLost as CutItself
from tests.support.client.byte_server import raw, says, serving
from tests.support.client.counting_server import LOOPS, Make, answer, counting_server, request, run
from tests.support.free_ports import free_port
from tests.support.gateway_server import until

PATIENCE = {"first": 30.0, "idle": 30.0, "total": 30.0}
CLOSES = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
"""An answer that promises to stay; the server leaves all the same."""


def exchange_with(url: str, headers: Mapping[str, str] | None = None) -> ConnectionPool:
    return ConnectionPool(URL(url), "there", headers or {}, connect_seconds=30, ssl=None)


async def asked(
    there: ConnectionPool,
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    body: object = None,
    again: bool = True,
) -> bytes:
    async with there.request("POST", URL(url), body or {"a": 1}, headers or {}, again=again, **PATIENCE) as wire:
        said = b""
        while piece := await wire.read_body():
            said += piece
        return said


async def test_a_wire_is_used_again_and_closed_with_the_exchange() -> None:
    async with serving(says(b"hi")) as server:
        there = exchange_with(server.url)
        assert [await asked(there, server.url) for _ in range(3)] == [b"hi"] * 3
        assert server.connections == 1
        [wire] = there._idle
        there.close()
        assert not wire.is_open


async def test_two_at_once_have_a_wire_each() -> None:
    async with serving(says(b"hi")) as server:
        there = exchange_with(server.url)
        assert await asyncio.gather(*(asked(there, server.url) for _ in range(5))) == [b"hi"] * 5
        assert server.connections == 5
        assert await asyncio.gather(*(asked(there, server.url) for _ in range(5))) == [b"hi"] * 5
        assert server.connections == 5
        there.close()


async def test_a_wire_that_the_server_has_closed_is_not_used() -> None:
    async with serving(raw(CLOSES)) as server:
        there = exchange_with(server.url)
        for _ in range(3):
            assert await asked(there, server.url) == b"hi"
            await until(lambda: not there._idle)
        assert server.connections == 3
        there.close()


async def test_a_wire_that_is_closed_as_it_is_used_is_exchanged_for_another() -> None:
    """The server hangs up on the second request without a word; that may happen to any connection that rested."""
    async with serving(says(b"hi"), raw(), says(b"there")) as server:
        there = exchange_with(server.url)
        assert await asked(there, server.url) == b"hi"
        assert await asked(there, server.url) == b"there"
        assert (len(server.asked), server.connections) == (3, 2)
        there.close()


async def test_what_may_have_been_taken_is_not_asked_again_where_that_does_harm() -> None:
    async with serving(says(b"hi"), raw(), says(b"there")) as server:
        there = exchange_with(server.url)
        assert await asked(there, server.url) == b"hi"
        with pytest.raises(ConnectionLost):
            await asked(there, server.url, again=False)
        assert len(server.asked) == 2
        there.close()


async def test_what_was_answered_in_part_is_not_asked_again() -> None:
    for part in (b"H", CLOSES[:20], b"HTTP/1.1 100 Continue\r\n\r\n"):
        async with serving(says(b"hi"), raw(part), says(b"there")) as server:
            there = exchange_with(server.url)
            assert await asked(there, server.url) == b"hi"
            with pytest.raises(ConnectionLost):
                await asked(there, server.url)
            assert len(server.asked) == 2
            there.close()


@LOOPS
def test_what_was_never_sent_whole_is_asked_again(make: Make) -> None:
    """Whoever hangs up in the middle of a request cannot have taken it."""
    connections, bodies = list[int](), list[int]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(len(connections))
        if len(connections) == 1:
            await request(reader)
            writer.write(answer(b"hi"))
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()
        else:
            bodies.append(len((await request(reader))[1]))
            writer.write(answer(b"there"))

    async def work() -> None:
        async with counting_server(talk) as server:
            there = exchange_with(server.url)
            assert await asked(there, server.url) == b"hi"
            assert await asked(there, server.url, body="x" * 30_000_000, again=False) == b"there"
            assert (len(connections), bodies) == (2, [30_000_002])
            there.close()
            await server.all_gone()

    run(make, work())


async def test_a_new_wire_that_is_closed_is_a_failure() -> None:
    assert ConnectionLost is CutItself
    async with serving(raw()) as server:
        there = exchange_with(server.url)
        with pytest.raises(ConnectionLost):
            await asked(there, server.url)
        assert len(server.asked) == 1


async def test_a_wire_at_rest_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 0.01)
    async with serving(says(b"hi")) as server:
        there = exchange_with(server.url)
        assert await asked(there, server.url) == b"hi"
        await until(lambda: not there._idle)
        assert await asked(there, server.url) == b"hi"
        assert server.connections == 2
        there.close()


async def test_only_so_many_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "MAX_IDLE", 3)
    async with counting_server(one_after_the_other) as server:
        there = exchange_with(server.url)
        assert await asyncio.gather(*(asked(there, server.url) for _ in range(8))) == [b"hi"] * 8
        assert (server.connections, len(there._idle), len(there._connections)) == (8, 3, 3)
        await until(lambda: server.open == 3)
        assert await asyncio.gather(*(asked(there, server.url) for _ in range(3))) == [b"hi"] * 3
        assert server.connections == 8
        there.close()
        await server.all_gone()


async def test_a_wire_that_rests_and_is_closed_by_the_server_is_forgotten() -> None:
    async with serving(raw(CLOSES)) as server:
        there = exchange_with(server.url)
        assert await asked(there, server.url) == b"hi"
        await until(lambda: not there._connections and not there._idle)


# -- who is reached, and how ------------------------------------------------------------------------------------------

async def one_after_the_other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await request(reader)
        writer.write(answer(b"hi"))


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
async def test_no_proxy_of_the_environment_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with counting_server(one_after_the_other) as server, counting_server(one_after_the_other) as proxy:
        monkeypatch.setenv(name, proxy.url)
        there = exchange_with(server.url)
        assert await asked(there, server.url) == b"hi"
        assert (server.connections, proxy.connections) == (1, 0)
        there.close()


async def test_an_address_of_the_newer_kind() -> None:
    seen = list[bytes]()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await request(reader))[0])
        writer.write(answer(b"hi"))

    async with counting_server(talk, host="::1") as server:
        there = exchange_with(server.url)
        assert await asked(there, server.url) == b"hi"
        assert b"\r\nhost: %b\r\n" % server.url.removeprefix("http://").encode() in seen[0]
        there.close()


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".test"])
async def test_a_name_that_no_host_can_have(host: str) -> None:
    with pytest.raises(BackendFailed, match="is not an address") as caught:
        await asked(exchange_with(f"http://{host}/"), f"http://{host}/")
    assert not caught.value.retryable


async def test_nobody_there() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ServerUnreachable, match="there cannot be reached"):
        await asked(exchange_with(url), url)
    with pytest.raises(ServerUnreachable):
        await asked(exchange_with("http://no.such.host.invalid"), "http://no.such.host.invalid")


async def test_a_server_that_answers_with_something_else_than_tls() -> None:
    listening = await asyncio.start_server(lambda _, writer: writer.write(b"SSH-2.0-OpenSSH\r\n"), "127.0.0.1", 0)
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    with pytest.raises(BackendFailed, match="does not speak a TLS version that is supported here"):
        await asked(exchange_with(url), url)
    listening.close()


# -- requests ---------------------------------------------------------------------------------------------------------

async def test_what_is_sent() -> None:
    async with serving(says(b"")) as server:
        there = exchange_with(server.url, {"X-Mine": "1", "User-Agent": "mine"})
        await asked(there, f"{server.url}/a%20b/%C3%BC?x=y%26z", {"x-mine": "2", "Accept": "text/event-stream"})
        there.close()
    [request] = server.asked
    assert (request.method, request.path, request.json) == ("POST", "/a%20b/%C3%BC?x=y%26z", {"a": 1})
    assert request.headers == {
        "host": server.url.removeprefix("http://"), "accept": "text/event-stream", "accept-encoding": "identity",
        "user-agent": "mine", "x-mine": "2", "content-type": "application/json", "content-length": "7",
    }
