"""A real MCP server over HTTP for tests, at a port of its own, with the headers of its requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

from tests.support.gateway_server import until


@dataclass
class McpOverHttp:
    """Where the server is, and what it was asked with."""

    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    meta: list[dict[str, Any]] = field(default_factory=list)
    """The `_meta` of each call of `add`."""


@asynccontextmanager
async def mcp_over_http(*, with_trouble: bool = False) -> AsyncIterator[McpOverHttp]:
    """A server that adds and tells the time; with trouble, it also has a tool that hangs and one that says too much."""
    server, told = MCPServer("tests"), McpOverHttp()

    @server.tool(title="Addition")
    def add(a: int, b: int, context: Context) -> str:  # type: ignore[type-arg]
        """Adds two numbers."""
        told.meta.append(dict(context.request_context.meta or {}))
        return str(a + b)

    @server.tool()
    def clock() -> str:
        """Tells the time, as another tool does, too."""
        return "half past mcp"

    if with_trouble:
        @server.tool()
        async def hang() -> str:
            """Does not end."""
            await asyncio.Event().wait()
            return "never"

        @server.tool()
        def chatter() -> str:
            """Says too much."""
            return "x" * (1024 * 1024 + 1)

    app = server.streamable_http_app()

    async def recorded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            told.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await app(scope, receive, send)

    config = uvicorn.Config(recorded, port=0, log_level="error", timeout_graceful_shutdown=1)
    listening = uvicorn.Server(config)
    serving = asyncio.create_task(listening._serve())
    await until(lambda: listening.started)
    told.url = f"http://127.0.0.1:{listening.servers[0].sockets[0].getsockname()[1]}/mcp"
    try:
        yield told
    finally:
        listening.should_exit = True
        await serving
