"""The wires to one server: used again while they last, opened anew where they do not, never led astray by a header."""

import asyncio
from collections.abc import Mapping

import pytest
from yarl import URL

from gateway.errors import BackendFailed
from gateway.upstream import Cut, Unreachable, exchange
from gateway.upstream.exchange import Exchange
from gateway.upstream.failures import Cut as CutItself
from tests.ports import free_port
from tests.upstream.serving import Server, raw, says, serving

PATIENCE = {"first": 30.0, "idle": 30.0, "total": 30.0}
CLOSES = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
"""An answer that promises to stay; the server leaves all the same."""


def exchange_with(url: str, headers: Mapping[str, str] | None = None) -> Exchange:
    return Exchange(URL(url), "there", headers or {}, connect_seconds=30, ssl=None)


async def asked(there: Exchange, url: str, headers: Mapping[str, str] | None = None) -> bytes:
    async with there.opened("POST", URL(url), {"a": 1}, headers or {}, **PATIENCE) as wire:
        body = b""
        while piece := await wire.body():
            body += piece
        return body


async def gone(server: Server, there: Exchange) -> None:
    """Until the wire at rest has heard that the server left."""
    async with asyncio.timeout(30):
        while any(wire.is_open for wire in there._resting):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_wire_is_used_again_and_closed_with_the_exchange() -> None:
    async with serving(says(b"hi")) as server:
        there = exchange_with(server.url)
        assert [await asked(there, server.url) for _ in range(3)] == [b"hi"] * 3
        assert server.connections == 1
        [wire] = there._resting
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
            await gone(server, there)
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


async def test_a_new_wire_that_is_closed_is_a_failure() -> None:
    assert Cut is CutItself
    async with serving(raw()) as server:
        there = exchange_with(server.url)
        with pytest.raises(Cut):
            await asked(there, server.url)
        assert len(server.asked) == 1


async def test_a_wire_at_rest_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "REST_SECONDS", 0.01)
    async with serving(says(b"hi")) as server:
        there = exchange_with(server.url)
        assert await asked(there, server.url) == b"hi"
        async with asyncio.timeout(30):
            while there._resting:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await asked(there, server.url) == b"hi"
        assert server.connections == 2
        there.close()


async def test_nobody_there() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable, match="there cannot be reached"):
        await asked(exchange_with(url), url)
    with pytest.raises(Unreachable):
        await asked(exchange_with("http://no.such.host.invalid"), "http://no.such.host.invalid")


async def test_a_server_that_answers_with_something_else_than_tls() -> None:
    listening = await asyncio.start_server(lambda _, writer: writer.write(b"SSH-2.0-OpenSSH\r\n"), "127.0.0.1", 0)
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    with pytest.raises(BackendFailed, match="speaks no TLS that we understand"):
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


@pytest.mark.parametrize(("url", "host"), [
    ("http://example.com/x", "example.com"), ("http://example.com:80/x", "example.com"),
    ("https://example.com:80/x", "example.com:80"), ("http://[::1]:8080/x", "[::1]:8080"),
    ("http://b\u00fccher.example/x", "xn--bcher-kva.example"),
])
def test_which_host_is_named(url: str, host: str) -> None:
    assert b"\r\nhost: %b\r\n" % host.encode() in exchange_with(url)._request("GET", URL(url), None, {})


def test_a_name_in_the_address_is_sent_as_such() -> None:
    request = exchange_with("http://ann:s%3Acret@example.com/")._request("GET", URL("http://example.com/"), None, {})
    assert b"authorization: Basic YW5uOnM6Y3JldA==\r\n" in request and b"content-length" not in request


@pytest.mark.parametrize("headers", [{"X-A": "1\r\nX-B: 2"}, {"X-A\n": "1"}, {"X-A": "\0"}])
def test_a_header_is_one_line(headers: dict[str, str]) -> None:
    with pytest.raises(BackendFailed, match="line break"):
        exchange_with("http://example.com/", headers)
