"""Reads what a ZenFlux server shows beside conversations: agents with their prompts, memories, names of tasks."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import quote

from msgspec import to_builtins

import gateway.model as m
from adapters.zenflux.wire import DIALECT_NAME, KEPT_FIELDS, LOCAL_USER, NewAgent
from gateway.client import HttpClient, members, objects
from gateway.errors import BackendFailed, Invalid, NotFound
from gateway.http import validate
from gateway.json_values import JsonObject
from gateway.ports import AgentDefinition, PastResource, RemoteAddress, ResourceGroup

from .readers import read_list, unwrap
from .requests import CLIENT_USER

MOST_MEMORIES = 200
"""How many memories a list has at most; ZenFlux has no further pages."""
MANY = f"memories before the newest {MOST_MEMORIES}: the list has no further pages"
TIMES = "ids and times of memories"
TASKS = "tasks: a client sees their names and timetables, and not what they ask of the agent"
SwitchedTools = Callable[[m.AgentCard, Mapping[str, bool]], dict[str, m.Permission] | None]
PROMPT = "its prompt, which the server does not show"


class PastResources:
    """See `gateway.ports.PastResources`. Memories are those of one user."""

    def __init__(self, address: RemoteAddress, user: str = "", *, enabled_tools: SwitchedTools) -> None:
        self._enabled_tools = enabled_tools
        self._upstream, self._user = HttpClient.at(address), user or CLIENT_USER
        self.unseen: Mapping[ResourceGroup, str] = {
            ResourceGroup.AGENTS: "MCP servers and skills of agents; versions and times",
            ResourceGroup.MEMORIES: TIMES,
            ResourceGroup.FILES: "ZenFlux does not list what was uploaded",
            ResourceGroup.SCHEDULES: TASKS,
        }

    async def read(self, group: ResourceGroup) -> AsyncIterator[PastResource]:
        if group is ResourceGroup.AGENTS:
            for row in read_list("list.agents", unwrap(await self._upstream.json("GET", "/agents"))):
                if agent_id := str(row["agent_id"] or row["id"] or ""):
                    yield await self._agent(agent_id)
        elif group is ResourceGroup.MEMORIES:
            place = f"/mem0/user/{quote(self._user, safe='')}"
            found = objects(unwrap(await self._upstream.json("GET", place, query={"limit": str(MOST_MEMORIES)})))
            for row in reversed(found):
                yield self._memory(row, (MANY,) if len(found) == MOST_MEMORIES else ())

    async def content(self, file_id: str) -> AsyncIterator[bytes]:
        raise NotFound(f"there is no file '{file_id}'")
        yield b""

    async def close(self) -> None:
        await self._upstream.close()

    async def _agent(self, agent_id: str) -> PastResource:
        place = f"/agents/{quote(agent_id, safe='')}"
        shown = members(unwrap(await self._upstream.json("GET", place)))
        prompt = members(unwrap(await self._upstream.json("GET", f"{place}/prompt"))).get("prompt")
        if not prompt:
            return PastResource(kind="agent", resource_id=agent_id, agent=agent_id, hidden=PROMPT)
        fields = {name: shown[name] for name in NewAgent.model_fields if shown.get(name) is not None}
        try:
            new = validate(NewAgent, {**fields, "prompt": prompt})
        except Invalid as error:
            raise BackendFailed(f"agent '{agent_id}' of the server cannot be understood: {error.message}") from None
        given, memory = new.model_dump(exclude_none=True), members(shown.get("memory")).get("mem0_enabled")
        definition = AgentDefinition(
            name=new.name, description=new.description or "", system=new.prompt, model=new.model or "",
            is_active=shown.get("is_active") is not False, memory=memory if isinstance(memory, bool) else None,
            extra={DIALECT_NAME: {name: given[name] for name in KEPT_FIELDS if name in given}},
        )
        return PastResource(
            kind="agent", resource_id=agent_id, agent=agent_id, body=to_builtins(definition),
            tools=lambda card: self._enabled_tools(card, new.enabled_capabilities or {}),
        )

    def _memory(self, row: JsonObject, unseen: tuple[str, ...]) -> PastResource:
        metadata, user = dict(members(row.get("metadata"))), str(row.get("user_id") or "")
        body: dict[str, Any] = {
            "content": str(row.get("memory") or ""), "owner": None if user in ("", LOCAL_USER) else user,
            "type": "experience" if metadata.pop("type", None) == "experience" else "feedback",
            "session_id": str(metadata.pop("source_session", None) or ""), "metadata": metadata,
        }
        return PastResource(kind="note", resource_id=str(row.get("id")), body=body, unseen=unseen)
