"""Finds or makes the agent and the environment of a session at a CAS server, and keeps its tools up to date."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import orjson
import structlog

import gateway.model as m
from adapters.cas.bodies import (
    AgentBody,
    AgentSettingsBody,
    ChangedSessionBody,
    CustomToolBody,
    EnvironmentBody,
    ModelBody,
    NewAgentBody,
    NewEnvironmentBody,
    ToolConfigBody,
    ToolsetBody,
    UsedAgentBody,
)
from adapters.cas.wire import POLICIES, POLICY_WORDS
from gateway.client import HttpClient, SessionMemory, read_pages, upstream_status
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject, JsonValue

from .readers import CAS, read_page, require_id

OWN_MARK = "dragoman"
"""The name of what is made here, and the key of its digest in its metadata."""
MAX_AGENTS = 256
"""So many agents are remembered; those forgotten are found again at the server."""
UNKNOWN_ID_STATUSES = (400, 404)
"""How a server answers to an id that it does not have, or that is none."""
MAX_PAGES = 20
"""So many pages of a list are looked through."""
PostJson = Callable[[str, Any], Awaitable[Any]]


@dataclass(frozen=True)
class ServerAgent:
    """An agent of a server, as far as the server shows it."""

    known_id: str | None
    name: str | None
    description: str | None
    model: str | None
    version: str
    tools: Sequence[dict[str, Any]]
    mark: str | None
    """The digest of its settings, if it was made here."""
    is_archived: bool

    @property
    def id(self) -> str:
        return require_id(self.known_id, "an agent")


class AgentProvisioner:
    """The agents and the environment of one server, found or made once and used again.

    A named agent is used as it is, with a session's settings laid over it; it is named by its id or, if that is
    unambiguous, by its name. If none is named, one is made for each choice of settings, with the model of the server's
    oldest agent, or else with its first model.
    """

    def __init__(self, upstream: HttpClient, post: PostJson, agent: str | None) -> None:
        self._upstream, self._post, self._named = upstream, post, agent
        self._is_found = False
        self._made = SessionMemory[str](MAX_AGENTS)
        self._environment: str | None = None

    def forget(self) -> bool:
        """Forget what may have been deleted at the server; returns whether there was anything to forget."""
        had = bool(self._made or self._environment)
        self._made.clear()
        self._environment = None
        return had

    async def agent(self, settings: m.Settings) -> str | dict[str, Any]:
        """The agent as a new session names it."""
        own = CAS.spell(agent_settings(settings, await self.own_tools() if _needs_own_tools(settings) else []))
        if self._named is not None:
            if not self._is_found:
                await self._named_agent()
            return CAS.spell(UsedAgentBody(id=self._named, settings=own)) if own else self._named
        digest = sha256(orjson.dumps({"name": OWN_MARK, **own}, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
        agent = self._made.get(digest) or await self._agent_of(digest, own, settings.model)
        self._made.put(digest, agent)
        return agent

    async def _agent_of(self, digest: str, own: Mapping[str, JsonValue], model: str | None) -> str:
        agents = await self._agents()
        for agent in agents:
            if agent.mark == digest and not agent.is_archived:
                return agent.id
        made = NewAgentBody(
            name=OWN_MARK, settings=own, model=model or await self._model(agents), metadata={OWN_MARK: digest})
        return read_agent(await self._post("/agents", CAS.spell(made))).id

    async def _agents(self) -> list[ServerAgent]:
        return [read_agent(body) for body in await self.listed("/agents")]

    async def _model(self, agents: Sequence[ServerAgent]) -> str:
        own = _default_agent(agents)
        if own is not None and own.model:
            return own.model
        models = [CAS.read(ModelBody.row, body, "a model") for body in await self.listed("/models")]
        chosen = [model for model in models if model["enabled"] is not False]
        if not chosen:
            raise BackendFailed(f"{self._upstream.name} has neither an agent nor a model to make one of")
        return require_id(chosen[0]["id"], "a model")

    async def own_tools(self) -> list[JsonValue]:
        """The tools of the server's agent with their policies, as the server spells them."""
        agent = _default_agent(await self._agents()) if self._named is None else await self._named_agent()
        return [tool for tool in (agent.tools if agent else ()) if kind_of_tool(tool) != CustomToolBody.row]

    async def _named_agent(self) -> ServerAgent:
        """The named agent; from now on its id is used."""
        try:
            response = await self._upstream.json("GET", f"/agents/{quote(self._named or '', safe='')}")
            agent = read_agent(response)
        except BackendFailed as error:
            if upstream_status(error) not in UNKNOWN_ID_STATUSES:
                raise
            called = [one for one in await self._agents()
                      if one.name == self._named and one.mark is None and not one.is_archived]
            if len(called) != 1:
                raise
            agent, self._named = called[0], called[0].id
        self._is_found = True
        return agent

    async def environment(self) -> str:
        if self._environment is None:
            known = [_environment(body) for body in await self.listed("/environments")]
            found = [one for one in known if one["name"] == OWN_MARK and not one["archived"]]
            new = NewEnvironmentBody(name=OWN_MARK, metadata={OWN_MARK: "1"})
            made = found[0] if found else _environment(await self._post("/environments", CAS.spell(new)))
            self._environment = require_id(made["id"], "an environment")
        return self._environment

    async def card(self) -> m.AgentCard:
        """The named agent, or the server's oldest; where it has none, its first model."""
        if self._named is not None:
            return agent_card(await self._named_agent())
        agents = await self._agents()
        own = _default_agent(agents)
        if own is not None:
            return agent_card(own)
        model = await self._model(agents)
        return m.AgentCard(name=model, model=model, capabilities=CAPABILITIES)

    async def listed(self, path: str, order: str = "asc", most: int | None = None) -> list[dict[str, Any]]:
        """All of a list or so many of it, oldest first or newest first."""
        return await read_pages(partial(read_page, self._upstream, path, order=order), most=most, max_pages=MAX_PAGES)


# -- settings → agent -------------------------------------------------------------------------------------------------
ANY_PARAMETERS = {"type": "object"}
"""The schema of a tool that does not say what it takes."""


def agent_settings(settings: m.Settings, own_tools: Sequence[JsonValue] = ()) -> AgentSettingsBody:
    """The settings of an agent that CAS has; it has no options.

    Tools of clients and of the agent are in one list. If the settings name none of the agent's, they are sent as they
    are: a toolset without policies would allow what the server asks about.
    """
    tools: list[Any] | None = None
    if settings.tools is not None or settings.client_tools:
        custom = [CustomToolBody(
            name=tool.name, description=tool.description, parameters=tool.parameters or ANY_PARAMETERS,
        ) for tool in settings.client_tools]
        tools = [*(own_tools if settings.tools is None else [_toolset(settings.tools)]), *map(CAS.spell, custom)]
    return AgentSettingsBody(
        model=settings.model, system=settings.system, mcp_servers=[*settings.mcp_servers] or None, tools=tools)


def changeable_settings(settings: m.Settings, own_tools: Sequence[JsonValue] = ()) -> AgentSettingsBody:
    """The settings of an agent that can still be changed in an existing session."""
    wanted = agent_settings(settings, own_tools)
    return AgentSettingsBody(
        mcp_servers=wanted.mcp_servers or [], tools=[*own_tools] if wanted.tools is None else wanted.tools)


def _needs_own_tools(settings: m.Settings) -> bool:
    """Whether the list of tools has to be sent although the settings name no tools."""
    return settings.tools is None and bool(settings.client_tools)


def _toolset(tools: Mapping[str, m.Permission]) -> object:
    configs = [ToolConfigBody(name=name, enabled=True, policy=POLICY_WORDS[permission])
               for name, permission in tools.items()]
    return CAS.spell(ToolsetBody(names=[*tools], configs=configs))


# -- agent → card -----------------------------------------------------------------------------------------------------
CAPABILITIES = m.AgentCapabilities(images=("http", "data"), client_tools=True)


def read_agent(body: JsonValue) -> ServerAgent:
    fields = CAS.read(AgentBody.row, body, "an agent")
    version, mark = fields["version"], (fields["metadata"] or {}).get(OWN_MARK)
    return ServerAgent(
        known_id=fields["id"], name=fields["name"], description=fields["description"], model=fields["model"],
        version=str(version) if isinstance(version, int | str) else "1",
        tools=[tool for tool in fields["tools"] or () if isinstance(tool, dict)],
        mark=mark if isinstance(mark, str) else None, is_archived=bool(fields["archived"]),
    )


def agent_card(agent: ServerAgent) -> m.AgentCard:
    return m.AgentCard(
        name=agent.name or agent.id, version=agent.version, description=agent.description, model=agent.model,
        tools=tuple(tool for toolset in agent.tools for tool in _tools(toolset)), capabilities=CAPABILITIES,
    )


def kind_of_tool(tool: JsonValue) -> str | None:
    """The row of the table that a server's tool is spelled by; None for a kind that the table does not have."""
    reader = CAS.table.reader(ToolsetBody.row, CustomToolBody.row)
    return reader.decode(tool).cue if reader.fits(tool) else None


def _tools(toolset: JsonObject) -> list[m.AgentTool]:
    """The tools that a toolset enables by name; others that it may have are unknown here."""
    if kind_of_tool(toolset) != ToolsetBody.row:
        return []
    fields = CAS.read(ToolsetBody.row, toolset, "an agent")
    configs = {config["name"]: config for config in fields["configs"] or ()}
    names = fields["names"] or [name for name, config in configs.items() if config["enabled"] is not False]
    return [
        m.AgentTool(spec=m.ToolSpec(name=name), permission=POLICIES.get(
            configs[name]["policy"] or "" if name in configs else "", m.Permission.ALLOW))
        for name in names if isinstance(name, str)
    ]


def _default_agent(agents: Sequence[ServerAgent]) -> ServerAgent | None:
    """The server's own choice: not archived, and none of ours."""
    return next((agent for agent in agents if agent.mark is None and not agent.is_archived), None)


def _environment(body: JsonValue) -> dict[str, Any]:
    return CAS.read(EnvironmentBody.row, body, "an environment")


log = structlog.get_logger("dragoman.remote")
FIXED_AGENT_STATUSES = (400, 403, 404, 405, 409, 422, 501)
"""How a server refuses that keeps a session's agent as it is."""
DEFAULT_SETTINGS = changeable_settings(m.Settings())


class SyncedSettings:
    """The settings that each session's agent was given; only changes are sent again."""

    def __init__(self, post: PostJson, own_tools: Callable[[], Awaitable[list[JsonValue]]]) -> None:
        self._post, self._own_tools = post, own_tools
        self._sent = SessionMemory[AgentSettingsBody]()
        """By session; a session that was forgotten gets all of its settings again."""

    def note(self, session_id: str, settings: m.Settings) -> None:
        """The session was made with these."""
        self._sent.put(session_id, changeable_settings(settings))

    async def send_changes(self, session_id: str, settings: m.Settings) -> None:
        """Send the changed settings; if the earlier ones are forgotten, those that are no default."""
        before, now = self._sent.get(session_id) or DEFAULT_SETTINGS, changeable_settings(settings)
        if now != before:
            tools = None if now.tools == before.tools else now.tools
            if tools is not None and settings.tools is None:
                tools = changeable_settings(settings, await self._own_tools()).tools
            servers = None if now.mcp_servers == before.mcp_servers else now.mcp_servers
            changed = CAS.spell(AgentSettingsBody(tools=tools, mcp_servers=servers))
            try:
                await self._post(f"/sessions/{session_id}", CAS.spell(ChangedSessionBody(agent=changed)))
            except BackendFailed as error:
                if upstream_status(error) not in FIXED_AGENT_STATUSES:
                    raise
                log.warning("remote_settings_refused", session=session_id, reason=error.message)
        self.note(session_id, settings)
