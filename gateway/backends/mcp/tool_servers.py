"""MCP servers as tools of an agent: connected at first use, connected again after a failure, and closed at the end."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

import gateway.model as m
from gateway.backends.toolbox import McpTool
from gateway.backends.tools import OutputSink, Tool, ToolCallResult, ToolFailed
from gateway.client import Redactor
from gateway.errors import BackendFailed, GatewayError, NotFound, TimedOut
from gateway.json_values import JsonObject
from gateway.ports import Addresses, ToolOutcome
from gateway.trace_context import trace_headers

from .client import (
    MAX_TOOL_PAGES,
    McpServerSettings,
    is_connection_lost,
    mcp_result_content,
    open_client,
    redact_content,
)

if TYPE_CHECKING:  # the package takes a second to import, and is optional
    from mcp import Client
    from mcp.types import CallToolResult

log = structlog.get_logger("dragoman.mcp")

CLOSE_SECONDS = 15.0
"""How long a server may take to stop."""
MAX_SESSION_SERVERS = 20
"""So many servers of a session are used; the rest is not connected to."""
SESSION_START_SECONDS = 10.0
MAX_QUOTED_CHARS = 500
"""At most so many characters of a server's error message are quoted."""


class McpToolServers:
    """All MCP servers of one agent, or those of one session."""

    def __init__(
        self, servers: Mapping[str, McpServerSettings], base: Path = Path(), addresses: Addresses | None = None,
    ) -> None:
        self._servers = [McpToolServer(name, settings, base, addresses) for name, settings in servers.items()]

    @classmethod
    def of_session(cls, settings: m.Settings, addresses: Addresses) -> "McpToolServers":
        """The servers that a client has named for its session: only URLs, and their tools ask for permission."""
        servers = {}
        for one in settings.mcp_servers[:MAX_SESSION_SERVERS]:
            url, tools = one.get("url"), one.get("tools")
            if not isinstance(url, str) or addresses.problem(url) is not None:
                log.warning("mcp_server_blocked", server=str(one.get("name"))[:MAX_QUOTED_CHARS])
                continue
            listed = dict.fromkeys(map(str, tools), m.Permission.ASK) if isinstance(tools, list) else None
            servers[str(one.get("name") or url)] = McpServerSettings.model_validate({
                "url": url, "headers": settings.mcp_headers_of(url), "start_seconds": SESSION_START_SECONDS,
                "permission": m.Permission.ASK if listed is None else m.Permission.DENY, "permissions": listed or {},
            })
        return cls(servers, addresses=addresses)

    async def tools(self) -> tuple[list[McpTool], list[m.NoticePosted]]:
        """The tools of all servers; a server that cannot be used is reported with a notice and skipped."""
        if not self._servers:
            return [], []
        found = await asyncio.gather(*(server.list_tools() for server in self._servers))
        return [tool for offered, _ in found for tool in offered], [notice for _, notice in found if notice is not None]

    def server(self, name: str) -> "McpToolServer":
        """The server of this name; `NotFound` if there is none, or if clients may not name its address."""
        for server in self._servers:
            if server.name == name:
                return server
        raise NotFound(f"there is no MCP server '{name}' that may be connected to")

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers))


class McpToolServer:
    """One server, across its connections."""

    def __init__(
        self, name: str, settings: McpServerSettings, base: Path = Path(), addresses: Addresses | None = None,
    ) -> None:
        self.name = name
        self._settings, self._base, self._addresses = settings, base, addresses
        self._life: McpConnection | None = None
        self._leaving: list[McpConnection] = []
        """Connections that nobody waits for any more; they are closing."""
        self._lock = asyncio.Lock()

    async def offered(self) -> list[McpTool]:
        """The tools of the server; raises a `GatewayError` if it cannot be used."""
        return [self._offered(spec) for spec in (await self._alive()).specs]

    async def call(self, name: str, input: JsonObject, out: OutputSink) -> ToolOutcome:
        """Call a tool outside of a turn."""
        result = await self._offered(m.ToolSpec(name=name)).tool.run(input, out)
        return ToolOutcome(text=m.text_of(result.content), is_error=result.is_error)

    async def list_tools(self) -> tuple[list[McpTool], m.NoticePosted | None]:
        try:
            return await self.offered(), None
        except GatewayError as error:
            log.warning("mcp_server_unavailable", server=self.name, reason=error.message)
            title = f"The MCP server '{self.name}' cannot be used: {error.message}"
            return [], m.NoticePosted(topic="mcp", title=title, level=m.NoticeLevel.WARNING)

    async def close(self) -> None:
        async with self._lock:
            lives, self._life, self._leaving = [self._life, *self._leaving], None, []
            for life in lives:
                if life is not None:
                    await life.end()

    def _offered(self, spec: m.ToolSpec) -> McpTool:
        async def work(input: dict[str, Any], out: OutputSink) -> ToolCallResult:
            return await self._call(spec.name, input, out)

        permission = self._settings.permissions.get(spec.name, self._settings.permission)
        return McpTool(
            server=self.name, spec=spec, tool=Tool(m.ToolSpec(name=spec.name), work), permission=permission,
            of_session=self._addresses is not None,
        )

    async def _call(self, name: str, input: dict[str, object], out: OutputSink) -> ToolCallResult:
        try:
            life = await self._alive()
        except GatewayError as error:
            raise ToolFailed(f"The MCP server '{self.name}' cannot be used: {error.message}") from None
        came = await life.call(name, input, out)
        if isinstance(came, ToolCallResult):
            return came
        if is_connection_lost(came):
            await self._drop(life)
        raise ToolFailed(f"{name} failed: {self._message(came)}")

    async def _alive(self) -> "McpConnection":
        """The open connection, or a new one."""
        async with self._lock:
            if self._life is not None and not self._life.has_ended:
                return self._life
            over, self._life = self._life, None
            if over is not None:
                await over.end()
            self._life = await self._started(McpConnection(
                self.name, self._settings, self._base, self._addresses))
            return self._life

    async def _started(self, life: "McpConnection") -> "McpConnection":
        """The connection once it is usable; one that is not, or that nobody waits for any more, is closed."""
        try:
            error = await life.wait_until_ready()
        except asyncio.CancelledError:
            life.request_stop()
            self._leaving = [*(one for one in self._leaving if not one.has_ended), life]
            raise
        if error is None:
            return life
        await life.end()
        if isinstance(error, TimeoutError):
            raise TimedOut(f"it did not start within {self._settings.start_seconds:g} seconds")
        raise BackendFailed(self._message(error))

    async def _drop(self, life: "McpConnection") -> None:
        async with self._lock:
            if self._life is life:
                self._life = None
        await life.end()

    def _message(self, error: BaseException) -> str:
        """The reason of a failure in one line, without secrets; the first one of several."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        words = " ".join(str(error).split()) or type(error).__name__
        proxy = self._settings.proxy
        through = f" (through the proxy {proxy.name})" if proxy is not None else ""
        return Redactor(self._settings.secrets).message(words)[:MAX_QUOTED_CHARS] + through


class McpConnection:
    """One connection, held by a task of its own, since the `mcp` package must open and close it in the same task."""

    def __init__(
        self, name: str, settings: McpServerSettings, base: Path, addresses: Addresses | None = None,
    ) -> None:
        self.specs: list[m.ToolSpec] = []
        self._name, self._settings, self._base, self._addresses = name, settings, base, addresses
        self._redactor = Redactor(settings.secrets)
        self._client: Client | None = None
        self._ready, self._let_go, self._gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._hold(), name=f"mcp {name}")

    @property
    def has_ended(self) -> bool:
        return self._gone.is_set() or self._task.done()

    async def wait_until_ready(self) -> BaseException | None:
        """Wait until the tools are known; the error if they are not."""
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait((ready, self._task), timeout=self._settings.start_seconds,
                               return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._ready.is_set():
            return None
        return self._failure() if self._task.done() else TimeoutError()

    async def call(self, name: str, input: dict[str, object], out: OutputSink) -> ToolCallResult | BaseException:
        """The result of a tool call, or the reason of its failure."""
        async def report(progress: float, total: float | None, message: str | None) -> None:
            if message:
                out(f"{message}\n")

        assert self._client is not None, "the connection is ready"
        asked = asyncio.ensure_future(self._client.call_tool(
            name, input, progress_callback=report, meta=trace_headers() or None))  # type: ignore[arg-type]
        try:
            await asyncio.wait((asked, self._task), return_when=asyncio.FIRST_COMPLETED)
            if asked.done() and not asked.cancelled():
                error = asked.exception()
                return error if error is not None else self._result(asked.result())
            return ConnectionError("the server has gone")
        finally:
            asked.cancel()

    def request_stop(self) -> None:
        self._let_go.set()
        if not self._ready.is_set():
            self._task.cancel()  # nobody waits for this start any more

    async def end(self) -> None:
        self.request_stop()
        _, late = await asyncio.wait((self._task,), timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
            await asyncio.wait((task,), timeout=CLOSE_SECONDS)
        if self._task.done() and (error := self._failure()) is not None:
            log.debug("mcp_server_failed", server=self._name, error=type(error).__name__)

    def _failure(self) -> BaseException | None:
        return asyncio.CancelledError() if self._task.cancelled() else self._task.exception()

    async def _hold(self) -> None:
        async with open_client(
            self._settings, self._base, self._gone, self._log_stderr, self._addresses,
        ) as client:
            self._client = client
            self.specs = await self._listed(client)
            self._ready.set()
            going = [asyncio.create_task(event.wait()) for event in (self._let_go, self._gone)]
            try:
                await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in going:
                    task.cancel()

    async def _listed(self, client: "Client") -> list[m.ToolSpec]:
        specs, cursor = [], None
        for _ in range(MAX_TOOL_PAGES):
            page = await client.list_tools(cursor=cursor)
            specs += [m.ToolSpec(
                name=tool.name, description=tool.description or "", parameters=tool.input_schema, title=tool.title,
            ) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        return specs

    def _result(self, result: "CallToolResult") -> ToolCallResult:
        return ToolCallResult(
            content=redact_content(mcp_result_content(result), self._redactor), is_error=bool(result.is_error)
        )

    def _log_stderr(self, line: str) -> None:
        log.info("mcp_server_stderr", server=self._name, line=self._redactor.message(line)[:MAX_QUOTED_CHARS])
