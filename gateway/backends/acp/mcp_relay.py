"""A local relay to the MCP servers that clients named: the agent connects to the relay, the relay to the server.

An agent resolves host names by itself, so an address that was checked before can lead elsewhere when the agent
connects. The relay opens the connection instead, and checks the address that it opens. A company's proxy is told the
IP address that was checked, not the name.
"""

import asyncio
import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import structlog
from aiohttp import web
from yarl import URL

from gateway.client import GuardedResolver, Proxy, SessionMemory, checked_ip, proxy_for
from gateway.errors import BackendFailed, GatewayError
from gateway.ports import Addresses

log = structlog.get_logger("dragoman.acp")
HOST = "127.0.0.1"
MAX_SERVERS = 10_000
"""So many servers are remembered; the one that was named longest ago is forgotten first."""
CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 16 * 1024 * 1024
METHODS = ("GET", "POST", "DELETE")
DROPPED_HEADERS = frozenset((
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade", "host", "content-length", "location", "www-authenticate",
))
"""Hop-by-hop headers, and headers of a response that name further addresses."""


class McpRelay:
    """One listener for all servers; the path of each server cannot be guessed."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._secret = secrets.token_bytes(32)
        self._targets = SessionMemory[str](MAX_SERVERS)
        self._starting = asyncio.Lock()
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._proxied: aiohttp.ClientSession | None = None
        self._origin = ""

    async def address(self, url: str) -> str:
        """The URL at which the agent reaches this server."""
        async with self._starting:
            if self._runner is None:
                await self._start()
        word = hmac.new(self._secret, url.encode(), "sha256").hexdigest()
        self._targets.put(word, url)
        return f"{self._origin}/{word}"

    async def close(self) -> None:
        for session in (self._session, self._proxied):
            if session is not None:
                await session.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _start(self) -> None:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{word}", self._pass_on)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, 0).start()
        except OSError as error:
            await runner.cleanup()
            raise BackendFailed(f"the relay for MCP servers cannot listen on {HOST}: {error.strerror}") from None
        connector = aiohttp.TCPConnector(
            limit=0, resolver=GuardedResolver(self._addresses),
            socket_factory=self._addresses.socket_factory("the MCP server"),
        )
        self._session, self._proxied = _session(connector), _session(aiohttp.TCPConnector(limit=0))
        self._runner, self._origin = runner, f"http://{HOST}:{runner.addresses[0][1]}"

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        url = self._targets.get(request.match_info["word"])
        if url is None or request.method not in METHODS:
            return web.Response(status=404, text="there is no such MCP server")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in DROPPED_HEADERS}
        assert self._session is not None and self._proxied is not None, "it was started before anybody could ask"
        place, proxy = URL(url), None
        try:
            proxy = proxy_for(place)
            if proxy is not None:
                headers["Host"] = place.host_port_subcomponent or ""
                place = place.with_host(await checked_ip(self._addresses, place.raw_host or "", place.port or 0))
            async with (self._session if proxy is None else self._proxied).request(
                request.method, place, headers=headers, data=await request.read() or None, allow_redirects=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                proxy=None if proxy is None else proxy.url,
                server_hostname=None if proxy is None else URL(url).raw_host,
            ) as answer:
                if 300 <= answer.status < 400:
                    return web.Response(status=502, text="the MCP server redirects; name the address it redirects to")
                return await _stream_response(request, answer)
        except (aiohttp.ClientError, GatewayError, OSError, TimeoutError) as error:
            why = _reason(error, url, proxy)
            log.warning("acp_mcp_relay_failed", host=urlsplit(url).hostname, reason=why)
            return web.Response(status=502, text=f"the MCP server cannot be reached: {why}")


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, connect=CONNECT_SECONDS)
    return aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(),
    )


def _reason(error: Exception, url: str, proxy: Proxy | None) -> str:
    if proxy is None:
        return (str(error) or type(error).__name__)[:200]
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return proxy.refusal(error.status, str(URL(url).origin())).message
    return f"{(str(error) or type(error).__name__)[:200]} (through the proxy {proxy.name})"


async def _stream_response(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Pass the response on chunk by chunk: an MCP server may answer with a stream."""
    headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in DROPPED_HEADERS]
    response = web.StreamResponse(status=answer.status, headers=dict(headers))
    await response.prepare(request)
    try:
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
    except (aiohttp.ClientError, OSError):  # the server aborted its response, or the agent has gone
        if request.transport is not None:
            request.transport.abort()
    return response


async def mcp_server_params(
    given: Iterable[Mapping[str, Any]], transports: frozenset[str], addresses: Addresses, relay: McpRelay,
) -> list[dict[str, Any]]:
    """The session's MCP servers with a URL, as parameters for the agent; a client's commands are never run here.

    The URL of a host that the operator has listed is passed on. Other servers are behind the relay, which supports
    the transport `http` only: with `sse` the server names a second address.
    """
    params = []
    for one in given:
        url, kind = one.get("url"), "sse" if one.get("type") == "sse" else "http"
        if not isinstance(url, str) or kind not in transports:
            continue
        problem = addresses.problem(url)
        is_listed = problem is None and addresses.allows_name(urlsplit(url).hostname or "")
        if problem is None and kind == "sse" and not is_listed:
            problem = "an MCP server of type sse is passed on only if `outbound: {allow: [...]}` lists its host"
        if problem is not None:
            log.warning("acp_mcp_server_blocked", name=one.get("name"), reason=problem)
            continue
        named = dict(one.get("headers") or {}).items()
        headers = [{"name": str(name), "value": str(value)} for name, value in named]
        params.append({"type": kind, "name": str(one.get("name") or url),
                     "url": url if is_listed else await relay.address(url), "headers": headers})
    return params
