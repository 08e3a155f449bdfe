"""Finds or makes the agent and the environment of a session at a CAS server, and keeps its tools up to date."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import orjson
import structlog

import gateway.model as m
from adapters.cas.wire import POLICIES, POLICY_WORDS
from gateway.client import (
    HttpClient,
    SessionMemory,
    members,
    objects,
    optional_text,
    require_id,
    require_object,
    upstream_status,
)
from gateway.errors import BackendFailed

OWN_MARK = "dragoman"
"""The name of what is made here, and the key of its digest in its metadata."""
TOOLSET = "agent_toolset_20260401"
MAX_AGENTS = 256
"""So many agents are remembered; those forgotten are found again at the server."""
UNKNOWN_ID_STATUSES = (400, 404)
"""How a server answers to an id that it does not have, or that is none."""
MAX_PAGES = 20
"""So many pages of a list are looked through."""
PostJson = Callable[[str, Any], Awaitable[Mapping[str, Any]]]


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
        own = agent_fields(settings, await self.own_tools() if _needs_own_tools(settings) else [])
        if self._named is not None:
            if not self._is_found:
                await self._named_agent()
            return {"id": self._named, "type": "agent", **own} if own else self._named
        body = {"name": OWN_MARK, **own}
        digest = sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
        agent = self._made.get(digest) or await self._agent_of(digest, body)
        self._made.put(digest, agent)
        return agent

    async def _agent_of(self, digest: str, body: dict[str, Any]) -> str:
        agents = await self.listed("/agents")
        for agent in agents:
            if _own_mark(agent) == digest and not agent.get("archived_at"):
                return require_id(agent, "an agent")
        model = body.get("model") or await self._model(agents)
        return require_id(
            await self._post("/agents", {**body, "model": model, "metadata": {OWN_MARK: digest}}), "an agent"
        )

    async def _model(self, agents: list[Mapping[str, Any]]) -> str:
        own = _default_agent(agents)
        if own is not None and model_of(own):
            return str(model_of(own))
        models = await self.listed("/models")
        chosen = [model for model in models if model.get("is_enabled") is not False]
        if not chosen:
            raise BackendFailed(f"{self._upstream.name} has neither an agent nor a model to make one of")
        return require_id(chosen[0], "a model")

    async def own_tools(self) -> list[Any]:
        """The tools of the server's agent with their policies, as the server spells them."""
        agent = _default_agent(await self.listed("/agents")) if self._named is None else await self._named_agent()
        return [tool for tool in objects((agent or {}).get("tools")) if tool.get("type") != "custom"]

    async def _named_agent(self) -> Mapping[str, Any]:
        """The named agent; from now on its id is used."""
        try:
            answer = await self._upstream.json("GET", f"/agents/{quote(self._named or '', safe='')}")
            agent: Mapping[str, Any] = require_object(answer, "an agent")
        except BackendFailed as error:
            if upstream_status(error) not in UNKNOWN_ID_STATUSES:
                raise
            called = [one for one in await self.listed("/agents")
                      if one.get("name") == self._named and _own_mark(one) is None and not one.get("archived_at")]
            if len(called) != 1:
                raise
            agent, self._named = called[0], require_id(called[0], "an agent")
        self._is_found = True
        return agent

    async def environment(self) -> str:
        if self._environment is None:
            found = [one for one in await self.listed("/environments")
                     if one.get("name") == OWN_MARK and not one.get("archived_at")]
            made = found[0] if found else await self._post(
                "/environments", {"name": OWN_MARK, "config": {"type": "cloud"}, "metadata": {OWN_MARK: "1"}})
            self._environment = require_id(made, "an environment")
        return self._environment

    async def card(self) -> m.AgentCard:
        """The named agent, or the server's oldest; where it has none, its first model."""
        if self._named is not None:
            return read_agent_card(await self._named_agent())
        agents = await self.listed("/agents")
        own = _default_agent(agents)
        if own is not None:
            return read_agent_card(own)
        model = await self._model(agents)
        return m.AgentCard(name=model, model=model, capabilities=CAPABILITIES)

    async def listed(self, path: str, order: str = "asc", most: int | None = None) -> list[Mapping[str, Any]]:
        """All of a list or so many of it, oldest first or newest first."""
        found: list[Mapping[str, Any]] = []
        query = {"limit": "100", "order": order}
        for _ in range(MAX_PAGES):
            page = require_object(await self._upstream.json("GET", path, query=query), "a list")
            rows = page.get("data")
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise BackendFailed(f"{self._upstream.name} answered with a list that has no data")
            found += rows
            is_last = page.get("has_more") is not True or not isinstance(page.get("next_page"), str)
            if is_last or (most is not None and len(found) >= most):
                break
            query = {"limit": "100", "order": order, "page": page["next_page"]}
        return found[:most]


# -- settings → agent -------------------------------------------------------------------------------------------------
def agent_fields(settings: m.Settings, own_tools: Sequence[Any] = ()) -> dict[str, Any]:
    """The settings of an agent that CAS has; it has no options.

    Tools of clients and of the agent are in one list. If the settings name none of the agent's, they are sent as they
    are: a toolset without policies would allow what the server asks about.
    """
    fields = {"model": settings.model, "system": settings.system, "mcp_servers": [*settings.mcp_servers] or None}
    own = {name: value for name, value in fields.items() if value is not None}
    if settings.tools is None and not settings.client_tools:
        return own
    custom = [
        {"type": "custom", "name": tool.name, "description": tool.description,
         "input_schema": tool.parameters or {"type": "object"}} for tool in settings.client_tools
    ]
    return {**own, "tools": [*(own_tools if settings.tools is None else [_toolset(settings.tools)]), *custom]}


def changeable_fields(settings: m.Settings, own_tools: Sequence[Any] = ()) -> dict[str, Any]:
    """The settings of an agent that can still be changed in an existing session."""
    fields = agent_fields(settings, own_tools)
    return {"tools": fields.get("tools", [*own_tools]), "mcp_servers": fields.get("mcp_servers", [])}


def _needs_own_tools(settings: m.Settings) -> bool:
    """Whether the list of tools has to be sent although the settings name no tools."""
    return settings.tools is None and bool(settings.client_tools)


def _toolset(tools: Mapping[str, m.Permission]) -> dict[str, Any]:
    configs = [
        {"name": name, "enabled": True, "permission_policy": {"type": POLICY_WORDS[permission]}}
        for name, permission in tools.items()
    ]
    return {"type": TOOLSET, "enabled_tools": [*tools], "configs": configs}


# -- agent → card -----------------------------------------------------------------------------------------------------
CAPABILITIES = m.AgentCapabilities(images=("http", "data"), client_tools=True)


def read_agent_card(agent: Mapping[str, Any]) -> m.AgentCard:
    version = agent.get("version")
    return m.AgentCard(
        name=optional_text(agent.get("name")) or require_id(agent, "an agent"),
        version=str(version) if isinstance(version, int | str) else "1",
        description=optional_text(agent.get("description")), model=model_of(agent),
        tools=tuple(tool for toolset in objects(agent.get("tools")) for tool in _tools(toolset)),
        capabilities=CAPABILITIES,
    )


def _tools(toolset: Mapping[str, Any]) -> list[m.AgentTool]:
    """The tools that a toolset enables by name; others that it may have are unknown here."""
    if toolset.get("type") != TOOLSET:
        return []
    configs = {config.get("name") or config.get("type"): config for config in objects(toolset.get("configs"))}
    names = toolset.get("enabled_tools") or [name for name, one in configs.items() if one.get("enabled") is not False]
    return [m.AgentTool(spec=m.ToolSpec(name=name), permission=_permission(configs.get(name, {})))
            for name in names if isinstance(name, str)]


def _permission(config: Mapping[str, Any]) -> m.Permission:
    policy = config.get("permission_policy")
    return POLICIES.get(str(policy.get("type") if isinstance(policy, dict) else policy), m.Permission.ALLOW)


def model_of(agent: Mapping[str, Any]) -> str | None:
    model = agent.get("model")
    return optional_text(model.get("id") if isinstance(model, dict) else model)


def _default_agent(agents: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The server's own choice: not archived, and none of ours."""
    return next((agent for agent in agents if _own_mark(agent) is None and not agent.get("archived_at")), None)


def _own_mark(agent: Mapping[str, Any]) -> str | None:
    mark = members(agent.get("metadata")).get(OWN_MARK)
    return mark if isinstance(mark, str) else None


log = structlog.get_logger("dragoman.remote")
FIXED_AGENT_STATUSES = (400, 403, 404, 405, 409, 422, 501)
"""How a server refuses that keeps a session's agent as it is."""
DEFAULT_FIELDS = changeable_fields(m.Settings())


class SyncedSettings:
    """The settings that each session's agent was given; only changes are sent again."""

    def __init__(self, post: PostJson, own_tools: Callable[[], Awaitable[list[Any]]]) -> None:
        self._post, self._own_tools = post, own_tools
        self._sent = SessionMemory[dict[str, Any]]()
        """By session; a session that was forgotten gets all of its settings again."""

    def note(self, session_id: str, settings: m.Settings) -> None:
        """The session was made with these."""
        self._sent.put(session_id, changeable_fields(settings))

    async def send_changes(self, session_id: str, settings: m.Settings) -> None:
        """Send the changed settings; if the earlier ones are forgotten, those that are no default."""
        before, now = self._sent.get(session_id) or DEFAULT_FIELDS, changeable_fields(settings)
        changed = {name: value for name, value in now.items() if value != before[name]}
        if changed:
            if "tools" in changed and settings.tools is None:
                changed["tools"] = changeable_fields(settings, await self._own_tools())["tools"]
            try:
                await self._post(f"/sessions/{session_id}", {"agent": changed})
            except BackendFailed as error:
                if upstream_status(error) not in FIXED_AGENT_STATUSES:
                    raise
                log.warning("remote_settings_refused", session=session_id, reason=error.message)
        self.note(session_id, settings)
