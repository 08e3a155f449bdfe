"""What aiohttp raises where a socket is opened becomes a failure in our words; a refusal is read as far as it comes."""

import asyncio
import ssl

import aiohttp
import pytest
import trustme

from gateway.client import HttpClient
from gateway.client.transport.http_client import aiohttp_errors, read_beginning
from gateway.errors import BackendFailed, ConnectionLost, GatewayError, ServerUnreachable, TimedOut
from tests.support.client.byte_server import ReceivedRequest, Server, chunk, hangs, head, says, serving, stream
from tests.support.free_ports import free_port


@pytest.mark.parametrize(("raised", "kind", "words"), [
    (aiohttp.ServerDisconnectedError(), ConnectionLost, "the connection to there broke (ServerDisconnectedError)"),
    (aiohttp.ServerTimeoutError(), TimedOut, "there sent nothing in time"),
    (TimeoutError(), TimedOut, "there took longer than 5 seconds in all"),
    (aiohttp.InvalidURL("x"), BackendFailed, "there is not an address: x"),
])
def test_a_failure_in_our_words(raised: Exception, kind: type[GatewayError], words: str) -> None:
    with pytest.raises(kind) as caught, aiohttp_errors("there", 5):
        raise raised
    assert caught.value.message == words


async def test_nobody_there_and_nobody_to_be_trusted() -> None:
    upstream = HttpClient(f"http://127.0.0.1:{free_port()}")
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ServerUnreachable, match="cannot be reached"), upstream.aiohttp_errors():
            await session.ws_connect(upstream.url)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        async with serving(stream(), tls=context) as server:
            secure = HttpClient(server.url)
            with pytest.raises(BackendFailed, match="does not verify") as caught, secure.aiohttp_errors():
                await session.ws_connect(secure.url)
            assert not caught.value.retryable


@pytest.mark.parametrize(("answer", "words"), [
    (says(b'{"error": "who are you?"}', 401), "answered 401: who are you?"),
    (says(b"x" * 20_000, 500), "answered 500: xxx"),
    (says(b"", 302, Location="http://elsewhere.test/x"), "answered 302 with a redirect"),
])
async def test_a_refusal_is_told(answer: object, words: str) -> None:
    async with serving(answer) as server, aiohttp.ClientSession() as session:  # type: ignore[arg-type]
        upstream = HttpClient(server.url)
        async with session.get(server.url, allow_redirects=False) as response:
            assert words in (await upstream.error_of(response)).message


async def test_of_a_refusal_that_breaks_off_there_is_the_beginning() -> None:
    async def cut(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        writer.write(head(403) + chunk(b"because"))
        writer.close()

    server = Server()
    timeout = aiohttp.ClientTimeout(sock_read=0.1)
    for answer in (cut, hangs(server, head(403), chunk(b"because"))):
        async with serving(answer) as served, aiohttp.ClientSession(timeout=timeout) as session:
            async with session.get(served.url) as response:
                assert await read_beginning(response, 4000) == b"because"
            async with session.get(served.url) as response:
                assert await read_beginning(response, 3) == b"bec"
