"""Agents as dialects share them: those of the settings, and those that users make from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user has made of a configured agent, which `model` chooses.

    `tools` are the tools of the server, each with its permission; None enables all tools of the configured agent.
    `memory` is whether its sessions use the memories of the user, None if it says nothing about that.
    `extra` has, under the name of a dialect, what only that dialect knows and gives back.
    """

    name: str
    description: str | None = None
    system: str | None = None
    model: str = ""
    tools: dict[str, m.Permission] | None = None
    client_tools: tuple[m.ToolSpec, ...] = ()
    mcp_servers: tuple[JsonObject, ...] = ()
    skills: tuple[str, ...] = ()
    options: dict[str, str] = {}
    memory: bool | None = None
    is_active: bool = True
    metadata: JsonObject = {}
    extra: dict[str, dict[str, Any]] = {}

    def changed(
        self, dialect: str, extra: Mapping[str, JsonValue] | None = None, **fields: object,
    ) -> "AgentDefinition":
        """The definition after a change by a dialect.

        What other dialects keep under the name of a changed field is dropped: it is not true any more.
        """
        kept = {
            other: {field: value for field, value in own.items() if other == dialect or field not in fields}
            for other, own in self.extra.items()
        }
        if extra is not None:
            kept[dialect] = {**kept.get(dialect, {}), **extra}
        return replace(self, extra={other: own for other, own in kept.items() if own}, **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAgent:
    """One version of an agent. `configured` is the agent of the settings, if this is one: it cannot be changed.

    `resource_id` is the parent of all that belongs to the agent.
    """

    agent_id: str
    resource_id: str
    version: int
    ordinal: int
    created_at: float
    updated_at: float
    definition: AgentDefinition
    archived_at: float | None = None
    configured: m.AgentCard | None = None

    @property
    def semantic_version(self) -> str:
        """The version in three numbers, as clients of some dialects expect it."""
        return self.configured.version if self.configured else f"{self.version}.0.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenAgent:
    """What a new session needs of an agent: the configured agent that runs it, and the settings."""

    agent: StoredAgent
    card: m.AgentCard
    settings: m.Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRoute:
    """The agent that runs a turn in place of the agent of its session, and the rule that says so."""

    agent: str
    rule: str


class Agents(Protocol):
    """The agents of all users; the agents of other users are not found, and those of the settings do not change."""

    async def get(self, owner: str, agent_id: str, version: int | None = ...) -> StoredAgent:
        """The agent at this version, or as it is now."""
    async def versions(self, owner: str, agent_id: str) -> Sequence[StoredAgent]:
        """Every version, oldest first."""
    async def page(
        self, owner: str, *, after: int | None = ..., before: int | None = ..., limit: int | None = ...,
        oldest_first: bool = ..., archived: bool = ...,
    ) -> Sequence[StoredAgent]:
        """A page by ordinal, or all agents; the agents of the settings are the oldest."""
    def configured(self) -> Mapping[str, StoredAgent]:
        """The agents of the settings by their names."""
    async def create(self, owner: str, definition: AgentDefinition, agent_id: str | None = ...) -> StoredAgent:
        """Make an agent, under an id of its owner's choice if there is one."""
    async def change(
        self, owner: str, agent_id: str, definition: AgentDefinition, expected: int | None = ...,
    ) -> StoredAgent:
        """Store a new version; `Conflict` if `expected` is not the current version."""
    async def changeable(self, owner: str, agent_id: str) -> StoredAgent:
        """The agent; `Forbidden` if it is one of the settings."""
    async def archive(self, owner: str, agent_id: str) -> StoredAgent: ...
    async def delete(self, owner: str, agent_id: str) -> None:
        """Delete the agent with all its versions; its sessions stay."""
    async def choose(self, owner: str, agent_id: str, version: int | None = ...) -> ChosenAgent:
        """The agent for a new session; `Conflict` if it takes no new sessions."""
    def settings_of(self, agent: StoredAgent) -> m.Settings:
        """The settings of a session with this agent."""
    def base_of(self, agent: StoredAgent) -> m.AgentCard:
        """The configured agent that runs the sessions of this agent."""
    def card_of(self, definition: AgentDefinition) -> m.AgentCard:
        """The configured agent that the model of a definition chooses."""
    def shown_card(self, agent: StoredAgent) -> m.AgentCard:
        """The agent as clients know agents."""
