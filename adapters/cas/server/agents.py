"""CAS's agents: the gateway's agents as CAS spells them, those of the settings and those that clients make."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import gateway.model as m
from adapters.cas.wire import CONFIGURED_PREFIX, AgentChange, AgentRef, CasSettings, ModelChoice, NewAgent
from gateway.errors import Conflict, Forbidden, NotFound
from gateway.http import Context
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import AgentDefinition, Agents, Resource, StoredAgent

from .inbound import client_tools, read_tools, server_tools, tools_of_agent
from .resource_routes import updated_metadata
from .skills import install_named, named_skills, session_skills, shown_skills

AGENT_KIND = "agent"
HASHED_ID = re.compile(CONFIGURED_PREFIX + "[0-9a-f]{24}")
"""The id of an agent whose name is no plain word; the name cannot be read from it."""
PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
COMMON_FIELDS = ("name", "description", "system")
DIALECT_FIELDS = ("model", "tools", "mcp_servers", "skills")


def model_id(model: str | ModelChoice) -> str:
    return model if isinstance(model, str) else model.id


def configured_id(name: str) -> str:
    """The id of an agent of the settings, which does not change when the server starts again."""
    return f"{CONFIGURED_PREFIX}{name if PLAIN_ID.fullmatch(name) else sha256(name.encode()).hexdigest()[:24]}"


def agent_id_of(view: m.SessionView, kept: Mapping[str, JsonValue]) -> str:
    """The id of a session's agent: the one that CAS has stored, else the one that another dialect chose, else that of
    the configured agent."""
    return str(kept.get("agent_id") or view.settings.agent_id or configured_id(view.agent))


@dataclass(frozen=True, slots=True)
class UserAgents:
    """The agents of one user. A body has the fields that only CAS knows under the dialect's name."""

    context: Context[CasSettings]
    owner: str

    @property
    def service(self) -> Agents:
        return self.context.agent_service

    async def find(self, agent_id: str, version: int | None = None) -> Resource:
        """The agent, at the version named or as it is now."""
        return self._resource(await self.service.get(self.owner, self._gateway_id(agent_id), version))

    async def versions(self, agent_id: str) -> Sequence[Resource]:
        """All versions of the agent, oldest first."""
        return [self._resource(one) for one in await self.service.versions(self.owner, self._gateway_id(agent_id))]

    async def some(
        self, *, after: int | None, before: int | None, limit: int, oldest_first: bool, archived: bool = False,
    ) -> Sequence[Resource]:
        """Up to `limit` agents between two ordinals; the agents of the settings are the oldest."""
        return [self._resource(one) for one in await self.service.page(
            self.owner, after=after, before=before, limit=limit, oldest_first=oldest_first, archived=archived)]

    async def create(self, new: NewAgent) -> Resource:
        empty = {"description": None, "system": None, "metadata": new.metadata or {}, self.context.dialect: {}}
        definition = self.definition_of(self.changed(empty, new), AgentDefinition(name=new.name))
        named = [one.model_dump() for one in new.skills or ()]
        known = await named_skills(self.context, self.owner, named)
        made = await self.service.create(self.owner, definition)
        if known:
            async with self.context.undo_if_refused(lambda: self.service.delete(self.owner, made.agent_id)):
                await install_named(self.context, self.owner, made.agent_id, named, known)
        return self._resource(made)

    async def update(self, agent_id: str, change: AgentChange) -> Resource:
        """Store the change as a new version of the agent; a change that alters nothing makes no version."""
        old = await self.changeable(agent_id)
        if old.archived_at is not None:
            raise Conflict(f"Agent '{agent_id}' is archived and cannot be changed.")
        if change.version != old.version:
            raise Conflict(f"version: name the version that you are changing; it is {old.version}", param="version")
        metadata = updated_metadata(self.context, old.body["metadata"], change.metadata)
        body = self.changed(old.body, change) | {"metadata": metadata}
        stored, named = await self.service.get(self.owner, agent_id), [one.model_dump() for one in change.skills or ()]
        known = await named_skills(self.context, self.owner, named)
        changed = await self.service.change(
            self.owner, agent_id, self.definition_of(body, stored.definition), expected=change.version)
        if "skills" in change.model_fields_set:
            await install_named(self.context, self.owner, changed.agent_id, named, known)
        return self._resource(changed)

    async def skills_of(self, found: Resource) -> list[JsonValue]:
        """The skills of an agent, as CAS spells them; of one that was deleted since it was found, those it names."""
        named = found.body[self.context.dialect].get("skills") or ()
        try:
            return await shown_skills(self.context, self.owner, self._gateway_id(found.resource_id), named)
        except NotFound:
            return list(named)

    async def session_skills(
        self, found: Resource, body: AgentRef,
    ) -> tuple[list[JsonValue], tuple[m.SkillRef, ...] | None]:
        """The skills of a new session: as clients see them, and for its agent, if the session names its own."""
        if body.skills is None:
            return await self.skills_of(found), None
        named = [one.model_dump() for one in body.skills]
        return session_skills(named, await named_skills(self.context, self.owner, named))

    async def changeable(self, agent_id: str) -> Resource:
        """The agent; raises `Forbidden` if the agent comes from the settings."""
        if self._gateway_id(agent_id) in self.context.agents:
            raise Forbidden(f"Agent '{agent_id}' is one of the server's settings and cannot be changed here.")
        return await self.find(agent_id)

    async def archive(self, agent_id: str) -> Resource:
        return self._resource(await self.service.archive(self.owner, agent_id))

    async def delete(self, agent_id: str) -> None:
        await self.service.delete(self.owner, agent_id)

    def changed(self, old: Mapping[str, Any], fields: NewAgent | AgentChange | AgentRef) -> dict[str, Any]:
        """The body after a change; absent fields stay, and a null removes an optional one."""
        self.context.check_addresses(fields.addresses("agent." if isinstance(fields, AgentRef) else ""))
        given = fields.model_dump(exclude_unset=True)
        body = {**old, **{word: given[word] for word in COMMON_FIELDS if word in given}}
        body["name"] = body["name"] or old.get("name")
        body[self.context.dialect] = old[self.context.dialect] | {
            word: given[word] for word in DIALECT_FIELDS if word in given
        }
        if fields.model is None:
            return body
        self.service.card_of(AgentDefinition(name="", model=model_id(fields.model)))
        return {word: value for word, value in body.items() if word != "agent"} | {"model": model_id(fields.model)}

    # -- what stands behind an agent ------------------------------------------------------------------------------

    def card_of(self, body: Mapping[str, Any]) -> m.AgentCard:
        if "agent" in body:
            return self.context.agent(body["agent"])
        return self.service.card_of(AgentDefinition(name="", model=body["model"]))

    def settings_of(self, found: Resource, body: Mapping[str, Any]) -> m.Settings:
        """The settings of a session with this agent; an agent of the settings changes none."""
        own = body[self.context.dialect]
        tools, is_made = read_tools(own.get("tools")), "agent" not in body
        return m.Settings(
            agent_id=found.resource_id if is_made else None, agent_version=found.version if is_made else None,
            mcp_servers=tuple(own.get("mcp_servers") or ()),
            tools=server_tools(tools, self.card_of(body)), client_tools=client_tools(tools), system=body["system"],
            model=body["model"] if is_made else None,
        )

    def definition_of(self, body: Mapping[str, Any], old: AgentDefinition) -> AgentDefinition:
        """A body as all dialects understand it."""
        own = body[self.context.dialect]
        tools = read_tools(own.get("tools"))
        return old.changed(
            self.context.dialect, own,
            name=body["name"], description=body["description"], system=body["system"], model=body["model"],
            tools=server_tools(tools, self.card_of(body)), client_tools=client_tools(tools),
            mcp_servers=tuple(own.get("mcp_servers") or ()), metadata=body["metadata"],
        )

    # -- what CAS's clients see -----------------------------------------------------------------------------------

    def _gateway_id(self, agent_id: str) -> str:
        """The id of an agent in the gateway: an agent of the settings is known by its name."""
        return next((name for name in self.context.agents if configured_id(name) == agent_id), agent_id)

    def _resource(self, agent: StoredAgent) -> Resource:
        fixed, made = agent.configured, agent.definition
        body: JsonObject = {
            "name": fixed.name if fixed else made.name, "description": made.description, "system": made.system,
            "metadata": made.metadata, "model": made.model, self.context.dialect: self._own_fields(agent),
        }
        return Resource(
            kind=AGENT_KIND, resource_id=configured_id(fixed.name) if fixed else agent.agent_id, owner=self.owner,
            ordinal=agent.ordinal, version=agent.version, created_at=agent.created_at, updated_at=agent.updated_at,
            archived_at=agent.archived_at, body=body | ({"agent": fixed.name} if fixed else {}),
        )

    def _own_fields(self, agent: StoredAgent) -> JsonObject:
        """The fields that only CAS has, as its client sent them; of what another dialect has set, as CAS spells it."""
        made = agent.definition
        own: dict[str, Any] = dict(made.extra.get(self.context.dialect, {}))
        if agent.configured is not None:
            return own
        if "tools" not in own and (made.tools is not None or made.client_tools):
            own["tools"] = tools_of_agent(made.tools, made.client_tools)
        if "mcp_servers" not in own and made.mcp_servers:
            own["mcp_servers"] = list(made.mcp_servers)
        return own
