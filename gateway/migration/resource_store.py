"""Stores what another server shows of a user beside sessions: under its old ids, for a user here, and only once."""

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol, TypeVar

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from gateway.errors import Invalid, NotFound
from gateway.ports import Addresses, AgentDefinition, Files, PastResource, Resources
from gateway.resources import (
    AGENT_NAME,
    MAX_MEMORIES,
    AgentService,
    Memory,
    ScheduledTask,
    Schedules,
    create_file_resource,
)

from .past_records import KEPT_ID, Origin

AGENT, FILE, NOTE, TASK = "agent", "file", "note", "task"
KEPT = {AGENT: AGENT_NAME, FILE: re.compile(r"file_[0-9a-f]{24}"), NOTE: re.compile(r"(?!)")}
"""The ids that a kind can keep, where not every id; memories have numbers, which are given here."""
Stored = TypeVar("Stored", AgentDefinition, Memory, ScheduledTask)
MODEL = "the model: it is not served here, so that the first agent of the settings runs it"


class ResourceStore(Protocol):
    """Where imported things are stored."""

    async def has(self, owner: str, kind: str, own_id: str) -> bool: ...
    async def store(
        self, owner: str, past: PastResource, own_id: str, parent: str, content: AsyncIterator[bytes] | None,
    ) -> list[str]:
        """Store it; what could not be kept."""


class NoResources:
    """A store in which nothing is, for a dry run where there is no file yet."""

    async def has(self, owner: str, kind: str, own_id: str) -> bool:
        return False

    async def store(
        self, owner: str, past: PastResource, own_id: str, parent: str, content: AsyncIterator[bytes] | None,
    ) -> list[str]:
        raise AssertionError("a dry run stores nothing")


def own_resource_id(origin: Origin, kind: str, resource_id: str) -> str:
    """The id here: the old one or, where it cannot be kept, always the same other one."""
    if KEPT.get(kind, KEPT_ID).fullmatch(resource_id):
        return resource_id
    return f"{kind}_{hashlib.sha256(f'{origin.dialect} {origin.url} {kind} {resource_id}'.encode()).hexdigest()[:24]}"


class ServerResources:
    """See `ResourceStore`. The resources of one server: what its clients could make themselves."""

    def __init__(
        self, resources: Resources, files: Files, agents: AgentService, schedules: Schedules,
        addresses: Callable[[], Addresses], default_agent: Callable[[], str],
    ) -> None:
        self._resources, self._files, self._agents, self._schedules = resources, files, agents, schedules
        self._addresses, self._default_agent = addresses, default_agent

    async def has(self, owner: str, kind: str, own_id: str) -> bool:
        try:
            if kind == AGENT:
                await self._agents.get(owner, own_id)
            else:
                await self._resources.get(kind, owner, own_id)
        except NotFound:
            return False
        return True

    async def store(
        self, owner: str, past: PastResource, own_id: str, parent: str, content: AsyncIterator[bytes] | None,
    ) -> list[str]:
        if past.kind == AGENT:
            definition, lost = self._fitting(_read(past.body, AgentDefinition), past)
            await self._agents.create(owner, definition, own_id)
            return lost
        if past.kind == TASK:
            task = _read({"agent": self._default_agent(), **past.body}, ScheduledTask)
            await self._schedules.add(owner, task, own_id)
        elif past.kind == NOTE:
            body = to_builtins(_read(past.body, Memory))
            await self._resources.create(NOTE, owner, body, resource_id=own_id, most=MAX_MEMORIES)
        elif content is not None:
            self._files.check_media_type(str(past.body["media_type"]))
            stored = await self._files.store(content, own_id)
            await create_file_resource(self._files, self._resources, owner, stored, past.body)
        else:
            await self._resources.create(past.kind, owner, past.body, parent=parent, resource_id=own_id)
        return []

    def _fitting(self, definition: AgentDefinition, past: PastResource) -> tuple[AgentDefinition, list[str]]:
        """The definition with a model and tools that are here, and what it lost."""
        lost = []
        for number, server in enumerate(definition.mcp_servers):
            self._addresses().check(str(server.get("url")), f"mcp_servers.{number}.url")
        try:
            card = self._agents.card_of(definition)
        except Invalid:
            definition, lost = replace(definition, model=self._default_agent()), [MODEL]
            card = self._agents.card_of(definition)
        if past.tools is not None:
            definition = replace(definition, tools=past.tools(card))
        return definition, lost


def _read(body: Mapping[str, object], kind: type[Stored]) -> Stored:
    try:
        return convert(body, kind)
    except ValidationError as error:
        raise Invalid(f"cannot be taken over: {error}") from None
