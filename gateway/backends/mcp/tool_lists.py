"""Lists the tools of MCP servers outside of turns: asked at need, for a few seconds at most, and remembered."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
import structlog
from msgspec.structs import replace

import gateway.model as m
from gateway.backends.tools import OutputSink
from gateway.errors import GatewayError, Invalid, Unsupported
from gateway.json_values import JsonObject
from gateway.ports import Addresses, Backend, Clock, ServerTool, ServerTools, ToolOutcome, ToolServingBackend

from .client import check_installed
from .tool_servers import McpToolServers

log = structlog.get_logger("dragoman.mcp")

WAIT_SECONDS = 5.0
"""So long a request waits for a server; a later answer is there for the next request."""
KEPT_SECONDS, RETRY_SECONDS = 60.0, 10.0
"""How long the tools of a server are cached, and how long a server that did not answer is not asked again."""
MAX_LISTS = 256
"""How many answers are remembered; the oldest are dropped."""
MAX_TOOLS, MAX_LIST_BYTES = 500, 256 * 1024
"""How much of an answer is remembered."""

ListKey = tuple[str, str, str]
ResultT = TypeVar("ResultT")
AskServer = Callable[[], Awaitable[Sequence[ServerTool]]]


class McpToolLists:
    """The tools of the servers of agents and of users; `backends` are the agents, `addresses` what users may name."""

    def __init__(
        self, backends: Callable[[], Mapping[str, Backend]], addresses: Callable[[], Addresses], clock: Clock,
    ) -> None:
        self._backends, self._addresses, self._clock = backends, addresses, clock
        self._known: OrderedDict[ListKey, tuple[float, ServerTools]] = OrderedDict()
        """By server: until when the answer is good, and the answer."""
        self._asked: dict[ListKey, asyncio.Task[ServerTools]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def of_agent(self, agent: str, server: str) -> ServerTools:
        backend = self._backends().get(agent)
        if not isinstance(backend, ToolServingBackend):
            return ServerTools()
        return await self._listed(("agent", agent, server), partial(backend.list_server_tools, server))

    async def of_user(self, owner: str, settings: m.Settings) -> ServerTools:
        digest = sha256(msgspec.json.encode((settings.mcp_servers, settings.mcp_headers))).hexdigest()
        return await self._listed(("user", owner, digest), partial(self._ask_of_session, settings))

    async def call(self, agent: str, server: str, tool: str, input: JsonObject, out: OutputSink) -> ToolOutcome:
        backend = self._backends().get(agent)
        if not isinstance(backend, ToolServingBackend):
            raise Unsupported(f"agent '{agent}' does not run tools outside of a conversation")
        return await backend.call_server_tool(server, tool, input, out)

    def forget(self) -> None:
        """Ask all servers again: the agents or the addresses that users may name have changed."""
        self._known.clear()
        self._asked.clear()

    async def close(self) -> None:
        for task in self._asked.values():
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)

    # -- asking ---------------------------------------------------------------------------------------------------

    async def _listed(self, key: ListKey, ask: AskServer) -> ServerTools:
        """The answer that is remembered, or a new one; requests that come together wait for one answer."""
        until, known = self._known.get(key, (0.0, ServerTools()))
        if asyncio.get_running_loop().time() < until:
            return known
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = self._task(self._answer(key, ask))
        done, _ = await asyncio.wait((asked,), timeout=WAIT_SECONDS)
        return asked.result() if done else replace(known, is_connected=False)

    async def _answer(self, key: ListKey, ask: AskServer) -> ServerTools:
        """Ask a server; if it gives no answer, its last one is kept as that of a server that is not connected."""
        loop = asyncio.get_running_loop()
        try:
            tools = _within_limits(await ask())
        except GatewayError as error:
            log.info("mcp_tools_not_listed", reason=error.message)
            answer = replace(self._known.get(key, (0.0, ServerTools()))[1], is_connected=False)
        else:
            answer = ServerTools(tools=tools, is_connected=True, connected_at=self._clock())
        if self._asked.get(key) is asyncio.current_task():
            del self._asked[key]
            self._known[key] = loop.time() + (KEPT_SECONDS if answer.is_connected else RETRY_SECONDS), answer
            self._known.move_to_end(key)
            while len(self._known) > MAX_LISTS:
                self._known.popitem(last=False)
        return answer

    async def _ask_of_session(self, settings: m.Settings) -> Sequence[ServerTool]:
        """The tools of a server of a user, by a connection that is closed again."""
        try:
            await asyncio.to_thread(check_installed)  # the package takes a second to import
        except Invalid as error:
            raise Unsupported(error.message) from None
        servers = McpToolServers.of_session(settings, self._addresses())
        try:
            [entry] = settings.mcp_servers
            found = await servers.server(str(entry.get("name"))).offered()
        finally:
            self._task(servers.close())
        return [one.as_server_tool for one in found if one.permission is not m.Permission.DENY]

    def _task(self, work: Coroutine[object, None, ResultT]) -> asyncio.Task[ResultT]:
        """Start something that nobody may wait for; the end of the server does."""
        task = asyncio.create_task(work, name="mcp tools")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _within_limits(tools: Sequence[ServerTool]) -> tuple[ServerTool, ...]:
    """As many tools, from the first one, as there is room for."""
    kept, room = list[ServerTool](), MAX_LIST_BYTES
    for one in tools[:MAX_TOOLS]:
        room -= len(msgspec.json.encode(one.spec))
        if room < 0:
            break
        kept.append(one)
    return tuple(kept)
