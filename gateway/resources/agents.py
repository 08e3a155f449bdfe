"""Agents: those of the settings, which nobody changes here, and those that users make from them, with all versions."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Conflict, Forbidden, Invalid, NotFound
from gateway.ids import random_id
from gateway.ports import AgentCalls, AgentDefinition, ChosenAgent, Resource, Resources, StoredAgent

from .named_resources import AlreadyExists, NamedResources

KIND = "agent"
AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
DEFINITION = "definition"
MAX_AGENTS = 1000
"""How many agents a user may make."""
MAX_SYSTEM_LENGTH = 100_000

Cards = Callable[[], Mapping[str, m.AgentCard]]
"""The agents of the settings as they are now, by their names; the first one is the default."""
MAX_COUNTED = 10_000
"""How many pairs of user and agent are counted; those that were used longest ago are dropped."""


class AgentService:
    """The agents of all users; the agents of other users are not found."""

    def __init__(self, resources: Resources, cards: Cards, started_at: float) -> None:
        self._resources = resources
        self._names = NamedResources(resources, KIND, "agent", AGENT_NAME, MAX_AGENTS)
        self._cards = cards
        self._started_at = started_at

    # -- finding --------------------------------------------------------------------------------------------------

    async def get(self, owner: str, agent_id: str, version: int | None = None) -> StoredAgent:
        """The agent at this version, or as it is now."""
        fixed = self.configured().get(agent_id)
        if fixed is not None:
            if version not in (None, 1):
                raise NotFound(f"agent '{agent_id}' has no version {version}; it has 1")
            return fixed
        return _stored(await self._found(owner, agent_id, version))

    async def versions(self, owner: str, agent_id: str) -> Sequence[StoredAgent]:
        """Every version, oldest first."""
        fixed = self.configured().get(agent_id)
        if fixed is not None:
            return [fixed]
        found = await self._found(owner, agent_id)
        return [_stored(one) for one in await self._resources.versions(KIND, owner, found.resource_id)]

    async def page(
        self, owner: str, *, after: int | None = None, before: int | None = None, limit: int | None = None,
        oldest_first: bool = True, archived: bool = False,
    ) -> Sequence[StoredAgent]:
        """A page by ordinal, or all agents; the agents of the settings are the oldest."""
        made = await self._resources.list(
            KIND, owner, after=after, before=before, limit=limit or MAX_AGENTS, archived=archived,
            oldest_first=oldest_first,
        )
        fixed = [
            one for one in self.configured().values()
            if (after is None or one.ordinal > after) and (before is None or one.ordinal < before)
        ]
        ordered = sorted([*fixed, *map(_stored, made)], key=lambda one: one.ordinal, reverse=not oldest_first)
        return ordered[:limit]

    def configured(self) -> dict[str, StoredAgent]:
        """The agents of the settings by their names."""
        cards = self._cards()
        return {
            card.name: StoredAgent(
                agent_id=card.name, resource_id=f"configured {card.name}", version=1, ordinal=number - len(cards),
                created_at=self._started_at, updated_at=self._started_at, configured=card,
                definition=AgentDefinition(
                    name=card.title or card.name, description=card.description, model=model_of(card),
                ),
            )
            for number, card in enumerate(cards.values())
        }

    # -- changing -------------------------------------------------------------------------------------------------

    async def create(self, owner: str, definition: AgentDefinition, agent_id: str | None = None) -> StoredAgent:
        """Make an agent, under an id of its owner's choice if there is one."""
        self.check(definition)
        body = {DEFINITION: msgspec.to_builtins(definition)}
        if agent_id is None:
            try:
                return _stored(await self._resources.create(
                    KIND, owner, body, resource_id=random_id(KIND), most=MAX_AGENTS))
            except Conflict:
                raise Conflict(f"you have {MAX_AGENTS} agents already; delete one first") from None
        self._names.check_name(agent_id, "agent_id")
        if agent_id in self._cards():
            raise AlreadyExists(f"agent '{agent_id}' exists already", param="agent_id")
        return _stored(await self._names.create(owner, agent_id, body))

    async def change(
        self, owner: str, agent_id: str, definition: AgentDefinition, expected: int | None = None,
    ) -> StoredAgent:
        """Store a new version, unless nothing is different; sessions keep the version that they began with."""
        old = await self.changeable(owner, agent_id)
        if old.archived_at is not None:
            raise Conflict(f"agent '{agent_id}' is archived and cannot be changed")
        if expected not in (None, old.version):
            raise Conflict(f"version: name the version that you are changing; it is {old.version}", param="version")
        if definition == old.definition:
            return old
        self.check(definition)
        found = await self._found(owner, agent_id)
        body = {**({"name": agent_id} if _is_named(found) else {}), DEFINITION: msgspec.to_builtins(definition)}
        return _stored(await self._resources.update(KIND, owner, found.resource_id, body, expected=old.version))

    async def archive(self, owner: str, agent_id: str) -> StoredAgent:
        await self.changeable(owner, agent_id)
        found = await self._found(owner, agent_id)
        return _stored(await self._resources.archive(KIND, owner, found.resource_id))

    async def delete(self, owner: str, agent_id: str) -> None:
        """Delete the agent with all its versions; its sessions stay."""
        await self.changeable(owner, agent_id)
        await self._resources.delete(KIND, owner, (await self._found(owner, agent_id)).resource_id)

    async def changeable(self, owner: str, agent_id: str) -> StoredAgent:
        """The agent, unless it is one of the settings."""
        if agent_id in self._cards():
            raise Forbidden(f"agent '{agent_id}' is set in the server's config.yaml and cannot be changed here")
        return await self.get(owner, agent_id)

    def check(self, definition: AgentDefinition) -> None:
        """Refuse a definition that no session could be made with."""
        card = self.card_of(definition)
        if len(definition.system or "") > MAX_SYSTEM_LENGTH:
            raise Invalid(f"system: must have at most {MAX_SYSTEM_LENGTH} characters, not "
                          f"{len(definition.system or '')}", param="system")
        for name in definition.tools or ():
            if card.tool(name) is None:
                raise Invalid(f"tools: agent '{card.name}' has no tool '{name}'", param="tools")

    # -- using ----------------------------------------------------------------------------------------------------

    async def choose(self, owner: str, agent_id: str, version: int | None = None) -> ChosenAgent:
        """The agent for a new session; an archived or inactive agent takes no new sessions."""
        found = await self.get(owner, agent_id, version)
        newest = found if version is None else await self.get(owner, agent_id)
        if newest.archived_at is not None:
            raise Conflict(f"agent '{agent_id}' is archived", param="agent")
        if not newest.definition.is_active:
            raise Conflict(f"agent '{agent_id}' is not active", param="agent")
        return ChosenAgent(agent=found, card=self.base_of(found), settings=self.settings_of(found))

    def settings_of(self, agent: StoredAgent) -> m.Settings:
        """The settings of a session with this agent; an agent of the settings changes none."""
        if agent.configured is not None:
            return m.Settings()
        made = agent.definition
        return m.Settings(
            agent_id=agent.agent_id, agent_version=agent.version, tools=made.tools, client_tools=made.client_tools,
            mcp_servers=made.mcp_servers, options=made.options, system=made.system, model=made.model or None,
            memory=made.memory,
        )

    def base_of(self, agent: StoredAgent) -> m.AgentCard:
        """The configured agent that runs the sessions of this agent."""
        return agent.configured or self.card_of(agent.definition)

    def card_of(self, definition: AgentDefinition) -> m.AgentCard:
        """The configured agent that has this model, or is called so; the first one if no model is named."""
        cards = self._cards()
        if not definition.model:
            return next(iter(cards.values()))
        card = models_of(cards.values()).get(definition.model) or cards.get(definition.model)
        if card is None:
            known = ", ".join(models_of(cards.values()))
            raise UnknownModel(f"model: there is no model '{definition.model}'; there are: {known}", param="model")
        return card

    def shown_card(self, agent: StoredAgent) -> m.AgentCard:
        """The agent as clients know agents: its id is the name, and it has only the tools that are enabled."""
        if agent.configured is not None:
            return agent.configured
        base, made = self.base_of(agent), agent.definition
        allowed = made.tools if made.tools is not None else {tool.spec.name: tool.permission for tool in base.tools}
        return replace(
            base, name=agent.agent_id, title=made.name, description=made.description, model=made.model or base.model,
            version=agent.semantic_version,
            tools=tuple(replace(tool, permission=allowed[tool.spec.name]) for tool in base.tools
                        if tool.spec.name in allowed),
        )

    async def _found(self, owner: str, agent_id: str, version: int | None = None) -> Resource:
        named = await self._names.find(owner, agent_id)
        resource_id = agent_id if named is None else named.resource_id
        return await self._resources.get(KIND, owner, resource_id, version)


class UnknownModel(Invalid):
    """No configured agent has this model."""

    usual_reason = m.FaultReason.UNKNOWN_MODEL


def model_of(card: m.AgentCard) -> str:
    return card.model or card.name


def models_of(cards: Iterable[m.AgentCard]) -> dict[str, m.AgentCard]:
    """Every agent under the name of its model; under its own name, if another agent has that model."""
    found: dict[str, m.AgentCard] = {}
    for card in cards:
        found.setdefault(card.model if card.model and card.model not in found else card.name, card)
    return found


def _stored(found: Resource) -> StoredAgent:
    return StoredAgent(
        agent_id=str(found.body["name"]) if _is_named(found) else found.resource_id, resource_id=found.resource_id,
        version=found.version, ordinal=found.ordinal, created_at=found.created_at, updated_at=found.updated_at,
        archived_at=found.archived_at, definition=_definition(found.body),
    )


def _is_named(found: Resource) -> bool:
    """Whether the owner has chosen the id."""
    return DEFINITION in found.body and "name" in found.body


def _definition(body: Mapping[str, object]) -> AgentDefinition:
    """A stored definition.

    A definition of an older version, in which dialects stored their fields at the top, has no tools that other dialects
    know: it enables none of the server's tools.
    """
    if DEFINITION in body:
        return msgspec.convert(body[DEFINITION], AgentDefinition)
    fields = set(AgentDefinition.__struct_fields__)
    older = {name: value for name, value in body.items() if name not in fields}
    known = {name: value for name, value in body.items() if name in fields and value is not None}
    return msgspec.convert({**known, "tools": {}, "extra": older}, AgentDefinition)


class AgentUsage:
    """The calls of agents by their users; an agent that was made is counted under its own id."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str], AgentCalls] = OrderedDict()

    def turn_ended(self, view: m.SessionView, ended: m.TurnEnded) -> None:
        key = view.owner, view.settings.agent_id or view.agent
        before = self._calls.pop(key, AgentCalls())
        failed = ended.outcome is m.Outcome.FAILED
        self._calls[key] = replace(
            before, total=before.total + 1, failed=before.failed + failed, last_used_at=view.at)
        if len(self._calls) > MAX_COUNTED:
            self._calls.popitem(last=False)

    def calls(self, owner: str, agent_id: str) -> AgentCalls:
        return self._calls.get((owner, agent_id), AgentCalls())
