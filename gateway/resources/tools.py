"""Tools: those of agents and of the server, and those that users register; some may run outside of a conversation."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jsonschema_rs
import msgspec
import structlog

import gateway.model as m
from gateway.errors import Forbidden, Invalid, NotFound, TooLarge
from gateway.ids import random_id
from gateway.json_values import JsonObject
from gateway.ports import Clock, OperatorOffers, Resource, Resources, ToolRunner

from .mcp_servers import McpServerService
from .named_resources import NamedResources

log = structlog.get_logger("dragoman.tools")

KIND = "tool"
TOOL_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
MAX_TOOLS = 128
"""How many tools a user may register."""
MAX_SCHEMA_BYTES = 64 * 1024
MAX_OUTPUT_BYTES = 1024 * 1024
MAX_SECONDS = 30.0
STRICTNESS = (m.Permission.ALLOW, m.Permission.ASK, m.Permission.DENY)

Cards = Callable[[], Mapping[str, m.AgentCard]]


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
    """A tool that a user sees: of agents or of the server, or registered by the user."""

    spec: m.ToolSpec
    permission: m.Permission = m.Permission.ALLOW
    agents: tuple[str, ...] = ()
    registered: ToolDefinition | None = None

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
    progress: tuple[str, ...] = ()


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

    Users register definitions and never code. What runs here is what the operator lists, and asks nobody.
    """

    resources: Resources
    cards: Cards
    servers: Callable[[], McpServerService]
    runner: ToolRunner
    offers: Callable[[], OperatorOffers]
    clock: Clock
    counts: dict[tuple[str, str], ToolCounts] = field(default_factory=dict)

    @property
    def _own(self) -> NamedResources:
        return NamedResources(self.resources, KIND, "tool", TOOL_NAME, MAX_TOOLS)

    # -- finding --------------------------------------------------------------------------------------------------

    async def all(self, owner: str) -> Sequence[KnownTool]:
        """The tools of agents and of the server, then those of the user, oldest first."""
        fixed = self._fixed()
        own = map(_stored, await self._own.all(owner))
        return [*fixed.values(), *(one for one in own if one.spec.name not in fixed)]

    async def get(self, owner: str, name: str) -> KnownTool:
        if (fixed := self._fixed().get(name)) is not None:
            return fixed
        found = await self._own.find(owner, name)
        if found is None:
            raise ToolNotFound(f"there is no tool '{name[:128]}'")
        return _stored(found)

    async def client_tools(self, owner: str) -> Sequence[m.ToolSpec]:
        """The tools that the user's client carries out."""
        found = map(_stored, await self._own.all(owner))
        return [one.spec for one in found if one.is_enabled and one.registered and one.registered.server is None]

    def count(self, owner: str, name: str) -> ToolCounts:
        return self.counts.get((owner, name), ToolCounts())

    def _fixed(self) -> dict[str, KnownTool]:
        """The tools of the settings; a tool of several agents has the strictest of their permissions."""
        found: dict[str, KnownTool] = {}
        for card in self.cards().values():
            for tool in card.tools:
                name = tool.spec.name
                before = found.get(name) or KnownTool(spec=tool.spec)
                strictest = max(before.permission, tool.permission, key=STRICTNESS.index)
                found[name] = KnownTool(
                    spec=before.spec, permission=strictest, agents=(*before.agents, card.name))
        for name, spec in self.runner.specs.items():
            found.setdefault(name, KnownTool(spec=spec))
        return found

    # -- changing -------------------------------------------------------------------------------------------------

    async def register(
        self, owner: str, name: str, definition: ToolDefinition, *, replace_existing: bool = False,
    ) -> KnownTool:
        """Store a definition under a name."""
        self._own.check_name(name, "name")
        check_schema(definition.parameters)
        if name in self._fixed():
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
            raise ToolNotFound(f"there is no tool '{name[:128]}'")
        await self.resources.delete(KIND, owner, found.resource_id)

    async def _check_server(self, owner: str, server: str) -> None:
        try:
            await self.servers().get(owner, server)
        except NotFound as error:
            raise Invalid(f"mcp_config.server_name: {error.message}", param="mcp_config.server_name") from None

    # -- running --------------------------------------------------------------------------------------------------

    async def check_runnable(self, owner: str, name: str, input: JsonObject) -> KnownTool:
        """The tool, if the user may run it with this input outside of a conversation."""
        found = await self.get(owner, name)
        for spec in (found.spec, self.runner.specs.get(name, found.spec)):
            for error in jsonschema_rs.validator_for(spec.parameters or True, offline=True).iter_errors(input):
                at = ".".join(("input", *map(str, error.instance_path)))
                raise Invalid(f"{at}: {error.message[:500]}", param=at)
        if found.permission is not m.Permission.ALLOW:
            raise Forbidden(f"the tool '{name}' needs a permission, which only a conversation can ask for")
        if found.registered is not None or name not in self.runner.specs:
            raise Invalid(f"the tool '{name}' cannot run here: only its agent, its MCP server or the client can run it")
        if name not in self.offers().execute:
            raise Forbidden(f"the tool '{name}' is not listed in management.execute of the server's config.yaml")
        return found

    async def run(
        self, owner: str, tool: KnownTool, input: JsonObject, seconds: float = MAX_SECONDS,
    ) -> Invocation:
        """Run a tool; what it was given is written down nowhere."""
        name, started, progress = tool.spec.name, self.clock(), list[str]()
        output = error = None
        timed_out = False
        try:
            async with asyncio.timeout(min(seconds, MAX_SECONDS)):
                outcome = await self.runner.run(name, input, progress.append)
        except TimeoutError:
            error, timed_out = f"{name} took longer than {min(seconds, MAX_SECONDS):g} seconds", True
        else:
            if len(outcome.text.encode("utf-8", "surrogatepass")) > MAX_OUTPUT_BYTES:
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
            invocation_id=random_id("inv"), tool=name, started_at=started, ended_at=self.clock(), output=output,
            error=error, timed_out=timed_out, progress=tuple(progress),
        )


def check_schema(schema: JsonObject) -> None:
    """Refuse what is no JSON schema of an object, or too large."""
    if len(msgspec.json.encode(schema)) > MAX_SCHEMA_BYTES:
        raise TooLarge(f"input_schema: must have at most {MAX_SCHEMA_BYTES} bytes", param="input_schema")
    if schema.get("type", "object") != "object":
        raise Invalid("input_schema: must describe an object", param="input_schema")
    try:
        jsonschema_rs.validator_for(schema, offline=True)
    except (jsonschema_rs.ValidationError, ValueError, TypeError) as error:
        raise Invalid(f"input_schema: is no JSON schema: {str(error)[:200]}", param="input_schema") from None


def _stored(found: Resource) -> KnownTool:
    definition = msgspec.convert(found.body["definition"], ToolDefinition)
    spec = m.ToolSpec(
        name=str(found.body["name"]), description=definition.description, parameters=definition.parameters)
    return KnownTool(spec=spec, permission=m.Permission.ASK, registered=definition)
