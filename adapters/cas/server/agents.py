"""CAS's agents: those of the settings, which always exist, and those that clients make from them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import gateway.model as m
from adapters.cas.wire import AgentChange, AgentRef, CasSettings, ModelChoice, NewAgent
from gateway.errors import Conflict, Forbidden, Invalid, NotFound
from gateway.http import Context
from gateway.ids import random_id
from gateway.json_values import JsonObject
from gateway.ports import Resource

from .inbound import client_tools, read_tools, server_tools
from .resource_routes import updated_metadata

AGENT_KIND = "agent"
PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")
COMMON_FIELDS = ("name", "description", "system")
DIALECT_FIELDS = ("model", "tools", "mcp_servers", "skills")


# -- models: the configured agents, by the names of their models ------------------------------------------------------

def models_of(agents: Mapping[str, m.AgentCard]) -> dict[str, m.AgentCard]:
    """Every agent under the name of its model; under its own name, if another agent has that model."""
    found: dict[str, m.AgentCard] = {}
    for card in agents.values():
        found.setdefault(card.model if card.model and card.model not in found else card.name, card)
    return found


def agent_for_model(agents: Mapping[str, m.AgentCard], model: str) -> m.AgentCard:
    """The agent that has this model, or is called so."""
    known = models_of(agents)
    card = known.get(model) or agents.get(model)
    if card is None:
        raise Invalid(f"model: there is no model '{model}'; there are: {', '.join(known)}", param="model")
    return card


def model_id(model: str | ModelChoice) -> str:
    return model if isinstance(model, str) else model.id


def configured_id(name: str) -> str:
    """The id of an agent of the settings: the same after every start."""
    return f"agent_{name if PLAIN_ID.fullmatch(name) else sha256(name.encode()).hexdigest()[:24]}"


# -- agents -----------------------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class UserAgents:
    """The agents of one user. Fields that only CAS has are in a body under the dialect's name."""

    context: Context[CasSettings]
    owner: str

    async def find(self, agent_id: str, version: int | None = None) -> Resource:
        """The agent, at the version named or as it is now."""
        fixed = self._configured().get(agent_id)
        if fixed is None:
            return await self.context.resources.get(AGENT_KIND, self.owner, agent_id, version)
        if version not in (None, 1):
            raise NotFound(f"agent '{agent_id}' has no version {version}; it has 1")
        return fixed

    async def versions(self, agent_id: str) -> Sequence[Resource]:
        """Oldest first."""
        fixed = self._configured().get(agent_id)
        return [fixed] if fixed else await self.context.resources.versions(AGENT_KIND, self.owner, agent_id)

    async def some(
        self, *, after: int | None, before: int | None, limit: int, oldest_first: bool, archived: bool = False,
    ) -> Sequence[Resource]:
        """A page by ordinal; those of the settings are the oldest."""
        made = await self.context.resources.list(
            AGENT_KIND,
            self.owner,
            after=after,
            before=before,
            limit=limit,
            archived=archived,
            oldest_first=oldest_first,
        )
        fixed = [
            one for one in self._configured().values()
            if (after is None or one.ordinal > after) and (before is None or one.ordinal < before)
        ]
        return sorted([*fixed, *made], key=lambda one: one.ordinal, reverse=not oldest_first)[:limit]

    async def create(self, new: NewAgent) -> Resource:
        empty = {"description": None, "system": None, "metadata": new.metadata or {}, self.context.dialect: {}}
        body = self.changed(empty, new)
        return await self.context.resources.create(AGENT_KIND, self.owner, body, resource_id=random_id("agent"))

    async def update(self, agent_id: str, change: AgentChange) -> Resource:
        """A new version, unless nothing is different."""
        old = await self.changeable(agent_id)
        if old.archived_at is not None:
            raise Conflict(f"Agent '{agent_id}' is archived and cannot be changed.")
        if change.version != old.version:
            raise Conflict(f"version: name the version that you are changing; it is {old.version}", param="version")
        metadata = updated_metadata(self.context, old.body["metadata"], change.metadata)
        body = self.changed(old.body, change) | {"metadata": metadata}
        if body == old.body:
            return old
        return await self.context.resources.update(AGENT_KIND, self.owner, agent_id, body, expected=change.version)

    async def changeable(self, agent_id: str) -> Resource:
        """The agent, unless it comes from the settings."""
        if agent_id in self._configured():
            raise Forbidden(f"Agent '{agent_id}' is one of the server's settings and cannot be changed here.")
        return await self.find(agent_id)

    def changed(self, old: Mapping[str, Any], said: NewAgent | AgentChange | AgentRef) -> dict[str, Any]:
        """The body after a change; absent fields stay, and a null removes an optional one."""
        self.context.check_addresses(said.addresses("agent." if isinstance(said, AgentRef) else ""))
        told = said.model_dump(exclude_unset=True)
        body = {**old, **{word: told[word] for word in COMMON_FIELDS if word in told}}
        body["name"] = body["name"] or old.get("name")
        body[self.context.dialect] = old[self.context.dialect] | {
            word: told[word] for word in DIALECT_FIELDS if word in told
        }
        if said.model is None:
            return body
        agent_for_model(self.context.agents, model_id(said.model))
        return {word: value for word, value in body.items() if word != "agent"} | {"model": model_id(said.model)}

    # -- what stands behind an agent ------------------------------------------------------------------------------

    def card_of(self, body: Mapping[str, Any]) -> m.AgentCard:
        return (
            self.context.agent(body["agent"])
            if "agent" in body
            else agent_for_model(self.context.agents, body["model"])
        )

    def settings_of(self, body: Mapping[str, Any]) -> m.Settings:
        """The settings of a session with this agent; an agent of the settings changes none."""
        own = body[self.context.dialect]
        tools = read_tools(own.get("tools"))
        return m.Settings(
            mcp_servers=tuple(own.get("mcp_servers") or ()),
            tools=server_tools(tools, self.card_of(body)), client_tools=client_tools(tools), system=body["system"],
            model=None if "agent" in body else body["model"],
        )

    # -- those of the settings ------------------------------------------------------------------------------------

    def _configured(self) -> dict[str, Resource]:
        cards = self.context.agents.values()
        fixed = (self._fixed(card, place - len(cards)) for place, card in enumerate(cards))
        return {one.resource_id: one for one in fixed}

    def _fixed(self, card: m.AgentCard, ordinal: int) -> Resource:
        body: JsonObject = {
            "name": card.name, "description": card.description, "system": None, "metadata": {},
            "model": card.model or card.name, "agent": card.name, self.context.dialect: {},
        }
        return Resource(
            kind=AGENT_KIND, resource_id=configured_id(card.name), owner=self.owner, ordinal=ordinal, version=1,
            created_at=self.context.started_at, updated_at=self.context.started_at, body=body,
        )
