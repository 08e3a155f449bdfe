"""The relay between an agent and the MCP servers that clients named: it connects where clients may send it."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web

from gateway.backends.acp.mcp_relay import MAX_SERVERS, McpRelay, mcp_server_params
from gateway.client import AddressPolicy
from tests.support.client.forward_proxy import forward_proxy

HTTP = frozenset({"http", "sse"})

LOOPBACK = AddressPolicy(["127.0.0.1"])


@asynccontextmanager
async def mcp_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[web.Request]]]:
    """A server on this machine; it remembers who has asked."""
    heard: list[web.Request] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        heard.append(request)
        if request.path == "/away":
            raise web.HTTPFound("http://169.254.169.254/latest")
        if request.path == "/closed":
            return web.Response(status=401, headers={"WWW-Authenticate": 'Bearer resource_metadata="http://10.0.0.1/"'})
        if request.path == "/torn":
            response = web.StreamResponse(headers={"Content-Length": "100"})
            await response.prepare(request)
            await response.write(b"half")
            assert request.transport is not None
            request.transport.abort()
            return response
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Mcp-Session-Id": "s1"})
        await response.prepare(request)
        await response.write(b"data: " + await request.read())
        await response.write(b"\n\n")
        return response

    app = web.Application()
    app.router.add_route("*", "/{path}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield runner.addresses[0][1], heard
    finally:
        await runner.cleanup()


@asynccontextmanager
async def relay_to(url: str, policy: AddressPolicy) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    relay = McpRelay(policy)
    try:
        async with aiohttp.ClientSession() as http:
            yield await relay.address(url), http
    finally:
        await relay.close()


async def test_requests_and_streams_pass_through() -> None:
    async with mcp_server() as (port, heard), relay_to(f"http://127.0.0.1:{port}/mcp?k=v", LOOPBACK) as (url, http):
        headers = {"Authorization": "Bearer x", "Mcp-Session-Id": "s1", "Content-Type": "application/json"}
        async with http.post(url, data=b"{}", headers=headers) as answer:
            assert (answer.status, await answer.read()) == (200, b"data: {}\n\n")
            assert answer.headers["Mcp-Session-Id"] == "s1"
        async with http.put(url) as answer:
            assert answer.status == 404
        async with http.get(f"{url}0") as answer:
            assert answer.status == 404, "nobody guesses the path of a server"
    [request] = heard
    assert (request.method, request.path_qs, request.headers["Authorization"]) == ("POST", "/mcp?k=v", "Bearer x")
    assert request.host == f"127.0.0.1:{port}"


async def test_a_name_that_leads_home_when_it_is_connected_to_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["93.184.215.14", "127.0.0.1"]
    policy = AddressPolicy()

    def lookup(host: str, port: Any, **given: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), port))]

    async with mcp_server() as (port, heard):
        url = f"http://rebind.example:{port}/mcp"
        async with relay_to(url, policy) as (address, http):
            monkeypatch.setattr(socket, "getaddrinfo", lookup)
            assert await policy.problem_resolved(url) is None, "the name is public when it is looked at"
            async with http.post(address, data=b"{}") as answer:
                assert answer.status == 502
                assert "not a public address" in await answer.text()
    assert (heard, answers) == ([], [])


async def test_a_literal_address_is_refused_too() -> None:
    async with (
        mcp_server() as (port, heard), relay_to(f"http://127.0.0.1:{port}/mcp", AddressPolicy()) as (url, http),
        http.post(url) as answer,
    ):
        assert answer.status == 502
    assert heard == []


def resolve(monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
    """Every name has these addresses."""
    async def looked_up(self: AddressPolicy, host: str, port: int | None = None) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]

    monkeypatch.setattr(AddressPolicy, "looked_up", looked_up)


async def test_a_proxy_is_told_the_ip_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "93.184.215.14")
    async with mcp_server() as (port, heard), forward_proxy(monkeypatch, "dragon:s3cret-pass") as proxy:
        async with (
            relay_to(f"http://mcp.example:{port}/mcp", AddressPolicy()) as (url, http),
            http.post(url, data=b"{}") as answer,
        ):
            assert (answer.status, await answer.read()) == (200, b"data: {}\n\n")
        async with relay_to("https://mcp.example/mcp", AddressPolicy()) as (url, http):
            proxy.refuses = 403
            async with http.post(url) as answer:
                assert answer.status == 502
                said = await answer.text()
    assert proxy.asked == [f"POST http://93.184.215.14:{port}/mcp HTTP/1.1", "CONNECT 93.184.215.14:443 HTTP/1.1"]
    assert heard[0].host == f"mcp.example:{port}" and "Proxy-Authorization" not in heard[0].headers
    assert f"the proxy http://127.0.0.1:{proxy.port} does not connect to https://mcp.example" in said
    assert "s3cret" not in said


async def test_the_server_behind_a_proxy_is_asked_for_the_certificate_of_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The proxy is told an address; the name is in the TLS handshake, and certificates are verified."""
    resolve(monkeypatch, "93.184.215.14")
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("mcp.example").configure_cert(context)
    context.sni_callback = lambda line, name, _: names.append(name)
    async with (
        mcp_server(context) as (port, heard), forward_proxy(monkeypatch) as proxy,
        relay_to(f"https://mcp.example:{port}/mcp", AddressPolicy()) as (url, http), http.post(url) as answer,
    ):
        assert (answer.status, "certificate" in await answer.text()) == (502, True), "nobody knows the authority"
    assert proxy.asked == [f"CONNECT 93.184.215.14:{port} HTTP/1.1"]
    assert (names, heard) == (["mcp.example"], [])


async def test_a_proxy_is_not_told_of_a_name_that_leads_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, "93.184.215.14", "10.0.0.7")
    async with (
        forward_proxy(monkeypatch) as proxy,
        relay_to("https://mcp.example/mcp", AddressPolicy()) as (url, http), http.post(url) as answer,
    ):
        assert answer.status == 502 and "not a public address" in await answer.text()
    assert proxy.asked == []


@pytest.mark.parametrize(("path", "status"), [("away", 502), ("closed", 401)])
async def test_the_agent_is_sent_nowhere_else(path: str, status: int) -> None:
    async with (
        mcp_server() as (port, _), relay_to(f"http://127.0.0.1:{port}/{path}", LOOPBACK) as (url, http),
        http.get(url, allow_redirects=False) as answer,
    ):
        assert answer.status == status
        assert not {"Location", "WWW-Authenticate"} & set(answer.headers)
        assert "169.254" not in await answer.text()


async def test_an_answer_that_breaks_off_breaks_off_here_too() -> None:
    async with mcp_server() as (port, _), relay_to(f"http://127.0.0.1:{port}/torn", LOOPBACK) as (url, http):
        with pytest.raises(aiohttp.ClientError):
            async with http.get(url) as answer:
                await answer.read()
        async with http.put(url) as answer:
            assert answer.status == 404, "the relay goes on"


async def test_an_agent_is_told_of_the_relay_and_of_listed_hosts() -> None:
    given = [
        {"name": "a", "url": "https://mcp.example.com/x"}, {"name": "b", "url": "https://wiki.corp.example./mcp"},
        {"name": "c", "url": "http://169.254.169.254/"}, {"name": "d", "url": "file:///etc/passwd"},
        {"name": "f", "url": "http://[x"},
        {"name": "e", "type": "sse", "url": "https://mcp.example.com/sse"},
    ]
    policy = AddressPolicy(["*.corp.example"])
    relay = McpRelay(policy)
    try:
        told = {one["name"]: one["url"] for one in await mcp_server_params(given, HTTP, policy, relay)}
        assert told == {"a": await relay.address("https://mcp.example.com/x"), "b": "https://wiki.corp.example./mcp"}
        assert told["a"].startswith("http://127.0.0.1:")
        for number in range(MAX_SERVERS):
            await relay.address(f"https://example.com/{number}")
        assert len(relay._targets) == MAX_SERVERS
    finally:
        await relay.close()
