"""Tools: those of agents and of the server, and those that users register; some may run outside of a conversation."""

import asyncio
import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import structlog
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Forbidden, Invalid, NotFound, RateLimited
from gateway.ids import random_id
from gateway.json_values import JsonObject
from gateway.ports import Clock, OperatorOffers, Resource, Resources, ServerTools, ToolOutcome, ToolRunner

from .mcp_connections import Cards, McpConnections, strictest
from .named_resources import NamedResources
from .tool_schemas import check_input, check_schema

log = structlog.get_logger("dragoman.tools")

KIND = "tool"
TOOL_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
MAX_TOOLS = 128
"""How many tools a user may register."""
MAX_OUTPUT_BYTES = 1024 * 1024
MAX_SECONDS = 30.0
MAX_CONCURRENT_RUNS = 4
"""How many tools a user may run at a time."""
RETRY_SECONDS = 5.0


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as a user registers it: the client carries it out or, if `server` is set, that MCP server does.

    `extra` has, under the name of a dialect, what only that dialect knows and gives back.
    """

    description: str
    parameters: JsonObject
    server: str | None = None
    enabled: bool = True
    extra: dict[str, JsonObject] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTool:
    """A tool that a user sees: of agents or of the server, of an MCP server, or registered by the user.

    `server` is the MCP server that has the tool; if the tool is not there now, it is not available.
    """

    spec: m.ToolSpec
    permission: m.Permission = m.Permission.ALLOW
    agents: tuple[str, ...] = ()
    registered: ToolDefinition | None = None
    server: str | None = None
    is_available: bool = True

    @property
    def name_at_server(self) -> str:
        """What the MCP server calls the tool."""
        return self.spec.name.removeprefix(f"{self.server}:")

    @property
    def qualified_name(self) -> str:
        """The name with that of its MCP server: what the operator lists."""
        return self.spec.name if self.server is None else f"{self.server}:{self.name_at_server}"

    @property
    def is_enabled(self) -> bool:
        return self.permission is not m.Permission.DENY and (self.registered is None or self.registered.enabled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One run of a tool outside of a conversation."""

    invocation_id: str
    tool: str
    started_at: float
    ended_at: float
    output: str | None = None
    error: str | None = None
    timed_out: bool = False


@dataclass(slots=True)
class ToolCounts:
    """How often a user has run a tool since the server started."""

    succeeded: int = 0
    failed: int = 0


class ToolNotFound(NotFound):
    """There is no tool of this name."""

    usual_reason = m.FaultReason.TOOL_NOT_FOUND


@dataclass(slots=True)
class ToolService:
    """The tools of all users; those that other users have registered are not found.

    Users register definitions and never code. Only tools that the operator lists run here, without permission.
    """

    resources: Resources
    cards: Cards
    connections: McpConnections
    runner: ToolRunner
    offers: Callable[[], OperatorOffers]
    clock: Clock
    counts: dict[tuple[str, str], ToolCounts] = field(default_factory=dict)
    running: Counter[str] = field(default_factory=Counter)

    @property
    def _own(self) -> NamedResources:
        return NamedResources(self.resources, KIND, "tool", TOOL_NAME, MAX_TOOLS)

    # -- finding --------------------------------------------------------------------------------------------------

    async def all(self, owner: str) -> Sequence[KnownTool]:
        """The tools of agents and of the server, those of MCP servers, then those of the user, oldest first."""
        offered = await self.connections.all(owner)
        found = {one.spec.name: one for name, answer in offered.items() for one in self._of_server(name, answer)}
        found |= self._fixed()
        for one in map(_stored, await self._own.all(owner)):
            if one.spec.name not in self._fixed():
                found.pop(one.spec.name, None)
                found[one.spec.name] = self._at_server(one, offered.get(one.server or "", ServerTools()))
        return sorted(found.values(), key=lambda one: (one.registered is not None, one.server is not None))

    async def get(self, owner: str, name: str) -> KnownTool:
        if (fixed := self._fixed().get(name)) is not None:
            return fixed
        if (own := await self._own.find(owner, name)) is not None:
            stored = _stored(own)
            return self._at_server(stored, await self._offered(owner, stored.server))
        server, _, tool = name.partition(":")
        if tool and TOOL_NAME.fullmatch(name):
            for one in self._of_server(server, await self._offered(owner, server)):
                if one.spec.name == name:
                    return one
        raise ToolNotFound(f"there is no tool '{name[:128]}'")

    async def client_tools(self, owner: str) -> Sequence[m.ToolSpec]:
        """The tools that the user's client carries out."""
        found = map(_stored, await self._own.all(owner))
        return [one.spec for one in found if one.is_enabled and one.server is None]

    async def server_tools(self, owner: str) -> Mapping[str, Sequence[str]]:
        """The tools of MCP servers that the user has registered, by the name of the server."""
        found: dict[str, list[str]] = {}
        for one in map(_stored, await self._own.all(owner)):
            if one.is_enabled and one.server is not None:
                found.setdefault(one.server, []).append(one.name_at_server)
        return found

    def count(self, owner: str, name: str) -> ToolCounts:
        return self.counts.get((owner, name), ToolCounts())

    def _fixed(self) -> dict[str, KnownTool]:
        """The tools of the settings; a tool of several agents has the strictest of their permissions."""
        found: dict[str, KnownTool] = {}
        for card in self.cards().values():
            for tool in card.tools:
                name = tool.spec.name
                before = found.get(name) or KnownTool(spec=tool.spec)
                found[name] = KnownTool(
                    spec=before.spec, permission=strictest(before.permission, tool.permission),
                    agents=(*before.agents, card.name))
        for name, spec in self.runner.specs.items():
            found.setdefault(name, KnownTool(spec=spec))
        return found

    # -- tools of MCP servers -------------------------------------------------------------------------------------

    async def _offered(self, owner: str, server: str | None) -> ServerTools:
        try:
            return await self.connections.of_server(owner, server) if server else ServerTools()
        except NotFound:
            return ServerTools()

    def _of_server(self, server: str, answer: ServerTools) -> list[KnownTool]:
        """The tools of a server under names with the name of the server; odd names cannot be called, and are left out.
        """
        agents = self.connections.agents_with(server)
        return [
            KnownTool(spec=replace(one.spec, name=f"{server}:{one.spec.name}"), permission=one.permission,
                      agents=agents, server=server, is_available=answer.is_connected)
            for one in answer.tools if TOOL_NAME.fullmatch(f"{server}:{one.spec.name}")
        ]

    def _at_server(self, tool: KnownTool, answer: ServerTools) -> KnownTool:
        """A registered tool as its MCP server has it now; a tool of a user's server needs a permission."""
        if tool.server is None:
            return tool
        agents = self.connections.agents_with(tool.server)
        for one in answer.tools:
            if one.spec.name == tool.name_at_server:
                return dataclasses.replace(
                    tool, permission=one.permission, agents=agents, is_available=answer.is_connected)
        return dataclasses.replace(tool, agents=agents, is_available=False)

    # -- changing -------------------------------------------------------------------------------------------------

    async def register(
        self, owner: str, name: str, definition: ToolDefinition, *, replace_existing: bool = False,
    ) -> KnownTool:
        """Store a definition under a name."""
        self._own.check_name(name, "name")
        check_schema(definition.parameters)
        if name in self._fixed() or (":" in name and self.connections.agents_with(name.partition(":")[0])):
            raise Forbidden(f"the tool '{name}' is one of the server's settings and cannot be changed here")
        if definition.server is not None:
            await self._check_server(owner, definition.server)
        body: JsonObject = {"definition": msgspec.to_builtins(definition)}
        found = await self._own.find(owner, name) if replace_existing else None
        if found is not None:
            return _stored(await self._own.update(found, body))
        return _stored(await self._own.create(owner, name, body))

    async def delete(self, owner: str, name: str) -> None:
        if name in self._fixed():
            raise Forbidden(f"the tool '{name}' is one of the server's settings and cannot be deleted here")
        found = await self._own.find(owner, name)
        if found is None:
            await self.get(owner, name)
            raise Forbidden(f"the tool '{name}' is one of its MCP server's, and was not registered")
        await self.resources.delete(KIND, owner, found.resource_id)

    async def _check_server(self, owner: str, server: str) -> None:
        try:
            await self.connections.servers.get(owner, server)
        except NotFound as error:
            raise Invalid(f"mcp_config.server_name: {error.message}", param="mcp_config.server_name") from None

    # -- running --------------------------------------------------------------------------------------------------

    async def check_runnable(self, owner: str, name: str, input: JsonObject) -> KnownTool:
        """The tool, if the user may run it with this input outside of a conversation."""
        found = await self.get(owner, name)
        for spec in (found.spec, self.runner.specs.get(name, found.spec)):
            check_input(spec, input)
        if found.permission is not m.Permission.ALLOW:
            raise Forbidden(f"the tool '{name}' needs a permission, which only a conversation can ask for")
        if found.server is None and (found.registered is not None or name not in self.runner.specs):
            raise Invalid(f"the tool '{name}' cannot run here: only its agent or the client can run it")
        if found.qualified_name not in self.offers().execute:
            raise Forbidden(f"the tool '{name}' is not listed in management.execute of the server's config.yaml")
        return found

    @contextmanager
    def reserve_run(self, owner: str) -> Iterator[None]:
        """Reserve a run until the block ends; raises `RateLimited` if the user runs too many tools already."""
        if self.running[owner] >= MAX_CONCURRENT_RUNS:
            raise RateLimited(
                f"you may run {MAX_CONCURRENT_RUNS} tools at once; wait until one has ended",
                retry_after=RETRY_SECONDS, details={"retry_after": round(RETRY_SECONDS)})
        self.running[owner] += 1
        try:
            yield
        finally:
            self.running[owner] -= 1
            if not self.running[owner]:
                del self.running[owner]

    async def run(
        self, owner: str, tool: KnownTool, input: JsonObject, seconds: float = MAX_SECONDS, *,
        invocation_id: str | None = None, out: Callable[[str], None] | None = None,
    ) -> Invocation:
        """Run a tool; its input is stored nowhere. `out` gets its progress messages."""
        name, started, printed = tool.spec.name, self.clock(), BoundedOutput(out)
        output = error = None
        timed_out = False
        try:
            async with asyncio.timeout(min(seconds, MAX_SECONDS)):
                outcome = await self._outcome(tool, input, printed.add)
        except TimeoutError:
            error, timed_out = f"{name} took longer than {min(seconds, MAX_SECONDS):g} seconds", True
        else:
            if not printed.has_room_for(outcome.text):
                error = f"{name} returned more than {MAX_OUTPUT_BYTES} bytes"
            elif outcome.is_error:
                error = outcome.text
            else:
                output = outcome.text
        counts = self.counts.setdefault((owner, name), ToolCounts())
        if error is None:
            counts.succeeded += 1
        else:
            counts.failed += 1
        log.info("tool_run", tool=name, owner=owner, succeeded=error is None)
        return Invocation(
            invocation_id=invocation_id or random_id("inv"), tool=name, started_at=started, ended_at=self.clock(),
            output=output, error=error, timed_out=timed_out,
        )

    async def _outcome(self, tool: KnownTool, input: JsonObject, out: Callable[[str], None]) -> ToolOutcome:
        if tool.server is not None:
            return await self.connections.call(tool.server, tool.name_at_server, input, out)
        return await self.runner.run(tool.spec.name, input, out)


class BoundedOutput:
    """The output of a running tool: passed on up to a number of bytes, and dropped from then on."""

    def __init__(self, out: Callable[[str], None] | None) -> None:
        self._out = out
        self._room = MAX_OUTPUT_BYTES

    def add(self, text: str) -> None:
        if self.has_room_for(text) and self._out is not None:
            self._out(text)

    def has_room_for(self, text: str) -> bool:
        """Whether there is room; the room is taken, and what does not fit leaves none."""
        self._room -= len(text.encode("utf-8", "surrogatepass"))
        return self._room >= 0


def _stored(found: Resource) -> KnownTool:
    definition = msgspec.convert(found.body["definition"], ToolDefinition)
    spec = m.ToolSpec(
        name=str(found.body["name"]), description=definition.description, parameters=definition.parameters)
    return KnownTool(spec=spec, permission=m.Permission.ASK, registered=definition, server=definition.server)
