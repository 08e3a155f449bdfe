"""MCP servers as tools of an agent: connected at first use, again when one has died, and put away at the end."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from gateway.errors import BackendFailed, GatewayError, TimedOut
from gateway.model import Level, NoticePosted, ToolSpec
from gateway.upstream import hidden

from .loop_mcp_wire import MOST_PAGES, Line, blotted, content_of, is_broken, made_client
from .loop_settings import McpSettings
from .loop_tools import ServerTool
from .tools import Out, Result, Tool, ToolFailed

log = structlog.get_logger("dragoman.mcp")

CLOSE_SECONDS = 15.0
"""How long a server may take to go when it is let go."""
TOLD = 500
"""So much of what a server says of its failure is passed on."""


class McpServers:
    """All the servers of one agent."""

    def __init__(self, servers: Mapping[str, McpSettings], base: Path = Path()) -> None:
        self._servers = [McpServer(name, settings, base) for name, settings in servers.items()]

    async def tools(self) -> tuple[list[ServerTool], list[NoticePosted]]:
        """What they offer; a server that cannot be used is told of and done without."""
        if not self._servers:
            return [], []
        found = await asyncio.gather(*(server.offers() for server in self._servers))
        return [tool for offered, _ in found for tool in offered], [notice for _, notice in found if notice is not None]

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers))


class McpServer:
    """One server, through all its lives."""

    def __init__(self, name: str, settings: McpSettings, base: Path = Path()) -> None:
        self.name = name
        self._settings, self._base = settings, base
        self._life: Life | None = None
        self._leaving: list[Life] = []
        """Those whose start nobody waited for; they are on their way out."""
        self._lock = asyncio.Lock()

    async def offers(self) -> tuple[list[ServerTool], NoticePosted | None]:
        try:
            return [self._offered(spec) for spec in (await self._alive()).specs], None
        except GatewayError as error:
            log.warning("an MCP server cannot be used", server=self.name, why=error.message)
            title = f"The MCP server '{self.name}' cannot be used: {error.message}"
            return [], NoticePosted(topic="mcp", title=title, level=Level.WARNING)

    async def close(self) -> None:
        async with self._lock:
            lives, self._life, self._leaving = [self._life, *self._leaving], None, []
            for life in lives:
                if life is not None:
                    await life.end()

    def _offered(self, spec: ToolSpec) -> ServerTool:
        async def work(input: dict[str, Any], out: Out) -> Result:
            return await self._call(spec.name, input, out)

        permission = self._settings.permissions.get(spec.name, self._settings.permission)
        return ServerTool(server=self.name, spec=spec, tool=Tool(ToolSpec(name=spec.name), work), permission=permission)

    async def _call(self, name: str, input: dict[str, Any], out: Out) -> Result:
        try:
            life = await self._alive()
        except GatewayError as error:
            raise ToolFailed(f"The MCP server '{self.name}' cannot be used: {error.message}") from None
        came = await life.call(name, input, out)
        if isinstance(came, Result):
            return came
        if is_broken(came):
            await self._drop(life)
        raise ToolFailed(f"{name} failed: {self._told(came)}")

    async def _alive(self) -> "Life":
        """The life there is, or a new one."""
        async with self._lock:
            if self._life is not None and not self._life.is_over:
                return self._life
            over, self._life = self._life, None
            if over is not None:
                await over.end()
            self._life = await self._started(Life(self.name, self._settings, self._base))
            return self._life

    async def _started(self, life: "Life") -> "Life":
        """The life as soon as it can be used; one that cannot, or that nobody waits for any more, is let go."""
        try:
            error = await life.begun()
        except asyncio.CancelledError:
            life.let_go()
            self._leaving = [*(one for one in self._leaving if not one.is_over), life]
            raise
        if error is None:
            return life
        await life.end()
        if isinstance(error, TimeoutError):
            raise TimedOut(f"it did not start within {self._settings.start_seconds:g} seconds")
        raise BackendFailed(self._told(error))

    async def _drop(self, life: "Life") -> None:
        async with self._lock:
            if self._life is life:
                self._life = None
        await life.end()

    def _told(self, error: BaseException) -> str:
        """Why something failed, in one line, without secrets; of several reasons the first."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        words = " ".join(str(error).split()) or type(error).__name__
        return hidden(words, self._settings.secrets)[:TOLD]


class Life:
    """A server from its start to its death: a task of its own holds it, as what it is made of belongs to one task."""

    def __init__(self, name: str, settings: McpSettings, base: Path) -> None:
        self.specs: list[ToolSpec] = []
        self._name, self._settings, self._base = name, settings, base
        self._client: Any = None
        self._ready, self._let_go, self._gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._hold(), name=f"mcp {name}")

    @property
    def is_over(self) -> bool:
        return self._gone.is_set() or self._task.done()

    async def begun(self) -> BaseException | None:
        """Wait until its tools are known; why they are not, otherwise."""
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait((ready, self._task), timeout=self._settings.start_seconds,
                               return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._ready.is_set():
            return None
        return self._failure() if self._task.done() else TimeoutError()

    async def call(self, name: str, input: dict[str, Any], out: Out) -> Result | BaseException:
        """What a tool gave back, or why it did not."""
        async def progress(done: float, total: float | None, message: str | None) -> None:
            if message:
                out(f"{message}\n")

        asked = asyncio.ensure_future(self._client.call_tool(name, input, progress_callback=progress))
        try:
            await asyncio.wait((asked, self._task), return_when=asyncio.FIRST_COMPLETED)
            if asked.done() and not asked.cancelled():
                error = asked.exception()
                return error if error is not None else self._result(asked.result())
            return ConnectionError("the server has gone")
        finally:
            asked.cancel()

    def let_go(self) -> None:
        self._let_go.set()
        if not self._ready.is_set():
            self._task.cancel()  # nobody waits for a start that is not wanted

    async def end(self) -> None:
        self.let_go()
        _, late = await asyncio.wait((self._task,), timeout=CLOSE_SECONDS)
        for task in late:
            task.cancel()
            await asyncio.wait((task,), timeout=CLOSE_SECONDS)
        if self._task.done() and (error := self._failure()) is not None:
            log.debug("an MCP server ended badly", server=self._name, error=type(error).__name__)

    def _failure(self) -> BaseException | None:
        return asyncio.CancelledError() if self._task.cancelled() else self._task.exception()

    async def _hold(self) -> None:
        async with made_client(self._settings, self._base, self._gone, self._say) as client:
            self._client = client
            self.specs = await self._listed(client)
            self._ready.set()
            going = [asyncio.create_task(event.wait()) for event in (self._let_go, self._gone)]
            try:
                await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in going:
                    task.cancel()

    async def _listed(self, client: Any) -> list[ToolSpec]:
        specs, cursor = [], None
        for _ in range(MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            specs += [ToolSpec(
                name=tool.name, description=tool.description or "", parameters=tool.input_schema, title=tool.title,
            ) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        return specs

    def _result(self, result: Any) -> Result:
        return Result(content=blotted(content_of(result), self._settings.secrets), is_error=bool(result.is_error))

    def _say(self, line: Line) -> None:
        log.info("an MCP server says", server=self._name, line=hidden(line, self._settings.secrets)[:TOLD])
