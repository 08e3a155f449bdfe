"""Servers behind a company's proxy: which ones, how they are asked, and what is said if the proxy does not help."""

import asyncio
import ssl
from base64 import b64encode
from pathlib import Path

import pytest
import trustme
from yarl import URL

from gateway.client import HttpClient
from gateway.client.transport.proxy import proxy_for
from gateway.errors import BackendFailed, GatewayError, ServerUnreachable
from gateway.ports.remote import Timeouts
from tests.support.client.byte_server import says as says_json
from tests.support.client.byte_server import serving, stream
from tests.support.client.counting_server import LOOPS, Make, run
from tests.support.client.forward_proxy import forward_proxy, listen

ONCE = Timeouts(connect=30, first_byte=30, idle=30, total=60, attempts=1)
LOGIN = "dragon:s3cret-pass"
EVENTS = (b"data: one\n\n", b"data: two\n\n", b"data: three\n\n")


@pytest.fixture
def tls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ssl.SSLContext:
    """The certificate of api.test, whose authority SSL_CERT_FILE names."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("api.test").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    return context


def at(url: str) -> str:
    """The server at a name that only the proxy can find."""
    return url.replace("127.0.0.1", "api.test")


async def events_of(upstream: HttpClient) -> list[str]:
    found = []
    async with upstream.stream("POST", "/chat", {"a": 1}) as events:
        while batch := await events.read():
            found += [event.data for event in batch]
    return found


# -- which servers ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("url", "exceptions"), [
    ("https://api.example.com/v1", ""), ("wss://api.example.com", ""), ("https://10.1.2.3", "10.2.0.0/16,[fd00::]/8"),
    ("https://notexample.com", "example.com"), ("https://example.com", "www.example.com"),
    ("https://example.com", "example.com:8443"), ("https://example.com", ",,"),
    ("https://[2001:db8::1]", "2001:db9::/32"),
])
def test_reached_through_the_proxy(url: str, exceptions: str) -> None:
    environ = {"HTTPS_PROXY": "http://proxy.corp:3128", "NO_PROXY": exceptions}
    found = proxy_for(URL(url), environ)
    assert found is not None and found.name == "http://proxy.corp:3128"


@pytest.mark.parametrize(("url", "exceptions"), [
    ("https://localhost:1", ""), ("https://a.localhost", ""), ("https://127.0.0.1", ""), ("https://127.9.9.9", ""),
    ("https://[::1]", ""), ("https://[::ffff:127.0.0.1]", ""), ("https://x.org", "*"),
    ("https://Example.com.", "example.com"),
    ("https://a.example.com", "example.com"), ("https://a.example.com", ".example.com"),
    ("https://a.b.corp", "x, *.corp"), ("https://example.com:8443", "example.com:8443"),
    ("https://10.2.0.7", "x 10.2.0.0/16"), ("https://10.2.0.7", "10.2.0.7"),
    ("https://[2001:db8::1]", "2001:db8::/32"), ("https://[2001:db8::1]:99", "[2001:db8::1]:99"),
    ("http://example.com", ""),
])
def test_reached_directly(url: str, exceptions: str) -> None:
    assert proxy_for(URL(url), {"HTTPS_PROXY": "http://proxy.corp:3128", "NO_PROXY": exceptions}) is None


def test_the_names_of_the_variables() -> None:
    plain, secure = URL("http://a.example"), URL("https://a.example")
    environ = {"http_proxy": "first:1", "HTTP_PROXY": "second:2", "HTTPS_PROXY": "third:3", "https_proxy": ""}
    assert [proxy.name for url in (plain, secure) if (proxy := proxy_for(url, environ))] == ["http://first:1", "http://third:3"]
    assert proxy_for(plain, {**environ, "no_proxy": "a.example"}) is None
    assert proxy_for(plain, {}) is None


@pytest.mark.parametrize("given", ["socks5://u:hidden@p:1", "https://u:hidden@p:1", "http://u:hidden@:x", "http://"])
def test_what_is_no_address_of_a_proxy_is_said_without_its_password(given: str) -> None:
    with pytest.raises(BackendFailed, match="HTTPS_PROXY is not the address of a proxy") as caught:
        proxy_for(URL("https://a.example"), {"HTTPS_PROXY": given})
    assert "hidden" not in str(caught.value)


# -- how they are asked -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("login", ["", LOGIN])
async def test_a_stream_of_http(monkeypatch: pytest.MonkeyPatch, login: str) -> None:
    async with serving(stream(*EVENTS)) as server, forward_proxy(monkeypatch, login) as proxy:
        upstream = HttpClient(f"{at(server.url)}/v1?k=v", headers={"X-Own": "1"}, timeouts=ONCE)
        assert await events_of(upstream) == ["one", "two", "three"]
        await upstream.close()
    assert proxy.asked == [f"POST {at(server.url)}/v1/chat?k=v HTTP/1.1"]
    [asked] = server.asked
    assert (asked.path, asked.json) == ("/v1/chat?k=v", {"a": 1})
    assert at(server.url).endswith(asked.headers["host"]) and "proxy-authorization" not in asked.headers


@LOOPS
@pytest.mark.parametrize("login", ["", LOGIN])
def test_a_stream_of_https(monkeypatch: pytest.MonkeyPatch, tls: ssl.SSLContext, make: Make, login: str) -> None:
    async def work() -> None:
        async with serving(stream(*EVENTS), tls=tls) as server, forward_proxy(monkeypatch, login) as proxy:
            upstream = HttpClient(at(server.url), headers={"Authorization": "Bearer k"}, timeouts=ONCE)
            assert await events_of(upstream) == ["one", "two", "three"]
            assert await events_of(upstream) == ["one", "two", "three"]
            await upstream.close()
        assert proxy.asked == [f"CONNECT {URL(at(server.url)).authority} HTTP/1.1"], "one tunnel serves both"
        assert "authorization" not in proxy.heads[0], "the key is for the server"
        assert [asked.path for asked in server.asked] == ["/chat", "/chat"]
        assert not any("proxy-authorization" in asked.headers for asked in server.asked)

    run(make, work())


async def test_an_exception_and_loopback_are_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(says_json(b"1")) as server, forward_proxy(monkeypatch) as proxy:
        upstream = HttpClient(server.url, timeouts=ONCE)
        assert await upstream.json("GET", "/") == 1
        await upstream.close()
    assert proxy.asked == []


# -- what is said -----------------------------------------------------------------------------------------------------

async def said(url: str) -> GatewayError:
    upstream = HttpClient(url, timeouts=ONCE)
    with pytest.raises(GatewayError) as caught:
        await upstream.json("POST", "/")
    await upstream.close()
    assert "s3cret" not in str(caught.value) and "dragon" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_wants_a_password(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    variable = f"{scheme.upper()}_PROXY"
    async with forward_proxy(monkeypatch, LOGIN) as proxy:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        error = await said(f"{scheme}://api.test")
        name = f"http://127.0.0.1:{proxy.port}"
        wants = f"the proxy {name} wants a user name and a password (407); give them in {variable}"
        assert error.message.startswith(wants) and not error.retryable
        monkeypatch.setenv(variable, f"http://dragon:wrong@127.0.0.1:{proxy.port}")
        assert "refuses its user name and password (407)" in (await said(f"{scheme}://api.test")).message
    assert proxy.heads[1]["proxy-authorization"] == f"Basic {b64encode(b'dragon:wrong').decode()}"


@pytest.mark.parametrize("status", [401, 403, 503])
async def test_an_answer_that_may_be_the_proxys_own(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    async with forward_proxy(monkeypatch, LOGIN, refuses=status) as proxy:
        error = await said("http://api.test")
    assert error.message == f"http://api.test (through the proxy http://127.0.0.1:{proxy.port}) answered {status}"


@pytest.mark.parametrize(("status", "retryable"), [(403, False), (503, True)])
async def test_a_proxy_that_opens_no_tunnel(monkeypatch: pytest.MonkeyPatch, status: int, retryable: bool) -> None:
    async with forward_proxy(monkeypatch, LOGIN, refuses=status) as proxy:
        error = await said("https://api.test")
    name = f"http://127.0.0.1:{proxy.port}"
    assert error.message == f"the proxy {name} does not connect to https://api.test (it answered {status})"
    assert error.retryable is retryable


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    async with forward_proxy(monkeypatch, LOGIN) as proxy:
        pass
    error = await said(f"{scheme}://api.test")
    assert isinstance(error, ServerUnreachable)
    assert f"cannot be reached through the proxy http://127.0.0.1:{proxy.port} (" in error.message


@pytest.mark.parametrize(("answer", "message"), [
    (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"), (b"HTTP/1.1 200 OK\r\n\r\nhello", "does not speak HTTP"),
    (b"HTTP/1.1 2", "closed the connection"), (b"x" * 100_000, "does not speak HTTP"),
])
async def test_what_is_no_proxy(monkeypatch: pytest.MonkeyPatch, answer: bytes, message: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    listening = await listen(talk)
    name = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    monkeypatch.setenv("HTTPS_PROXY", f"http://{LOGIN}@{name}")
    error = await said("https://api.test")
    listening.close()
    assert f"the proxy http://{name} {message}" in error.message


async def test_the_connection_to_a_proxy_that_opens_no_tunnel_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy may refuse and wait for the client to go. The error is kept here: it would keep an open socket alive."""
    is_closed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 No\r\n\r\n")
        assert await reader.read() == b""
        is_closed.set()
        writer.close()

    listening = await listen(talk)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    error = await said("https://api.test")
    async with asyncio.timeout(30):
        await is_closed.wait()
    listening.close()
    assert "it answered 403" in error.message
