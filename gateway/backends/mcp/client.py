"""Clients of MCP servers, made with the `mcp` package, and the results of their tools."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from errno import EACCES
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, HttpUrl, PositiveFloat, model_validator
from yarl import URL

import gateway.model as m
from gateway.backends.setting_types import Executable, SecretSetting
from gateway.client import (
    AddressRefused,
    Proxy,
    Redactor,
    check_authorities,
    checked_ip,
    load_client_certificate,
    proxy_for,
)
from gateway.errors import Invalid
from gateway.ports import Addresses

if TYPE_CHECKING:  # the package takes a second to import, and is optional
    import httpx2
    from mcp import Client
    from mcp.types import CallToolResult

MAX_TOOL_PAGES = 50
"""A list of tools has at most so many pages."""
MAX_LINE_BYTES = 64 * 1024
_GONE_CODES = frozenset((-32000, -32600))
"""Error codes: the connection was closed; the server does not know our session any more."""


class McpServerSettings(BaseModel):
    """One MCP server, by command or by URL, and the permissions of its tools."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: dict[str, SecretSetting] = {}
    command: Executable | None = None
    args: tuple[str, ...] = ()
    url: HttpUrl | None = None
    headers: dict[str, SecretSetting] = {}
    key: SecretSetting | None = None
    permission: m.Permission = m.Permission.ASK
    permissions: dict[str, m.Permission] = {}
    start_seconds: PositiveFloat = 30.0
    call_seconds: PositiveFloat = 120.0

    @model_validator(mode="after")
    def _one_of_two(self) -> "McpServerSettings":
        if (self.command is None) is (self.url is None):
            raise ValueError("an MCP server has a command or a url, and not both")
        if self.command is None and (self.args or self.env):
            raise ValueError("args and env belong to a command")
        if self.url is None and (self.headers or self.key):
            raise ValueError("headers and key belong to a url")
        return self

    @property
    def proxy(self) -> Proxy | None:
        """The proxy through which the server is reached."""
        return None if self.url is None else proxy_for(URL(str(self.url)))

    @property
    def secrets(self) -> tuple[str, ...]:
        given = (*self.env.values(), *self.headers.values(), *((self.key,) if self.key else ()))
        return tuple(secret.get_secret_value() for secret in given)


def check_installed() -> None:
    """Raise if the `mcp` package is not installed."""
    try:
        import mcp  # noqa: F401  # it takes a second, which no turn should have to wait for
    except ImportError:
        raise Invalid(
            "MCP servers need a package that is not installed: pip install 'mcp>=2.3', "
            "or Dragoman with its extra 'mcp'",
        ) from None


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection is unusable; a server's error about a call leaves it usable."""
    from mcp import MCPError

    return not isinstance(error, MCPError) or error.code in _GONE_CODES


@asynccontextmanager
async def open_client(
    settings: McpServerSettings, base: Path, gone: asyncio.Event, on_line: Callable[[str], None],
    addresses: Addresses | None = None,
) -> "AsyncIterator[Client]":
    """A connected client; `gone` is set when the server ends by itself, `on_line` gets the lines that it prints.

    With `addresses` it connects only to addresses that clients may name.
    """
    from mcp import Client

    async with AsyncExitStack() as stack:
        if settings.command is not None:
            transport = _watch_for_exit(await _stdio_transport(settings, base, on_line, stack), gone)
        else:
            transport = await _http_transport(settings, stack, addresses)
        yield await stack.enter_async_context(
            Client(transport, read_timeout_seconds=settings.call_seconds, cache=None))


async def _stdio_transport(
    settings: McpServerSettings, base: Path, on_line: Callable[[str], None], stack: AsyncExitStack,
) -> object:
    from mcp import StdioServerParameters, stdio_client

    stderr = await stack.enter_async_context(_stderr_pipe(on_line))
    return stdio_client(StdioServerParameters(
        command=settings.command or "", args=list(settings.args), cwd=base,
        env={name: value.get_secret_value() for name, value in settings.env.items()},
    ), errlog=stderr)


async def _http_transport(
    settings: McpServerSettings, stack: AsyncExitStack, addresses: Addresses | None,
) -> Any:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
    if settings.key is not None:
        headers["Authorization"] = f"Bearer {settings.key.get_secret_value()}"
    timeout = httpx2.Timeout(settings.start_seconds, read=settings.call_seconds)
    proxy = settings.proxy
    guards = [] if addresses is None else [_address_guard(addresses, proxy is not None)]
    http = await stack.enter_async_context(httpx2.AsyncClient(
        headers=headers, timeout=timeout, verify=_certificates(addresses is None), event_hooks={"request": guards},
        trust_env=False, proxy=None if proxy is None else str(proxy.url),
    ))
    return streamable_http_client(str(settings.url), http_client=http)


@lru_cache(maxsize=2)
def _certificates(is_ours: bool) -> ssl.SSLContext:
    """The trusted authorities, read once, because reading them blocks the server; and for our servers who we are."""
    import httpx2

    check_authorities()
    context = httpx2.create_ssl_context()
    if is_ours:
        load_client_certificate(context)
    return context


def _address_guard(addresses: Addresses, is_proxied: bool) -> "Callable[[httpx2.Request], Awaitable[None]]":
    """A hook that sends each request to an IP address that was looked up and checked just before.

    The name stays in the header `Host` and in the TLS handshake, so certificates are verified as usual. A proxy is
    told the IP address as well.
    """
    async def guard(request: "httpx2.Request") -> None:
        host = request.url.host
        if (problem := addresses.problem(str(request.url))) is not None:
            raise AddressRefused(EACCES, problem)
        if is_proxied and addresses.allows_name(host):
            return  # it may have any address, so the proxy may look it up: perhaps only the proxy can
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=await checked_ip(addresses, host, port))

    return guard


@asynccontextmanager
async def _watch_for_exit(transport: Any, gone: asyncio.Event) -> AsyncIterator[Any]:
    """The stdio transport; the end of the server process is noticed at once, not at the next call."""
    import anyio

    async with transport as (read, write), anyio.create_task_group() as group:
        passed, taken = anyio.create_memory_object_stream[object](0)

        async def relay() -> None:
            async with passed:
                async for message in read:
                    await passed.send(message)
            gone.set()

        group.start_soon(relay)
        async with taken:
            yield taken, write
        group.cancel_scope.cancel()


@asynccontextmanager
async def _stderr_pipe(on_line: Callable[[str], None]) -> AsyncIterator[Any]:
    """A file whose lines go to a function."""
    reading, writing = os.pipe()
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0))
    listening = asyncio.create_task(_forward_lines(reader, on_line))
    try:
        with os.fdopen(writing, "w") as file:
            yield file
    finally:
        listening.cancel()
        transport.close()
        await asyncio.wait((listening,))


async def _forward_lines(reader: asyncio.StreamReader, on_line: Callable[[str], None]) -> None:
    while True:
        try:
            line = await reader.readline()
        except ValueError:  # a longer line is divided
            continue
        if not line:
            return
        on_line(line.decode(errors="replace").rstrip())


# -- results ----------------------------------------------------------------------------------------------------------

def mcp_result_content(result: "CallToolResult") -> m.Content:
    """The result of a tool; a string if it is only text."""
    parts = [part for block in result.content if (part := _part(block)) is not None]
    if not parts and result.structured_content is not None:
        return msgspec.json.encode(result.structured_content).decode()
    if all(isinstance(part, m.TextPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, m.TextPart))
    return tuple(parts)


def redact_content(content: m.Content, redactor: Redactor) -> m.Content:
    """The content without our long secrets."""
    if isinstance(content, str):
        return redactor.body(content)
    return tuple(replace(part, text=redactor.body(part.text)) if isinstance(part, m.TextPart) else part
                 for part in content)


def _part(block: Any) -> m.AnyPart | None:
    match block.type:
        case "text":
            return m.TextPart(text=block.text)
        case "image":
            return m.ImagePart(url=f"data:{block.mime_type};base64,{block.data}", media_type=block.mime_type)
        case "resource":
            text = getattr(block.resource, "text", None)
            return m.TextPart(text=text if text is not None else f"[{block.resource.uri}]")
        case "resource_link":
            return m.TextPart(text=f"[{block.name}]({block.uri})")
    return m.TextPart(text=f"[{block.type}]")
