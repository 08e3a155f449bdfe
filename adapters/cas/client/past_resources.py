"""Reads what a CAS server shows beside sessions: agents, environments, vaults, memory stores with memories, files."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import to_builtins
from pydantic import BaseModel
from yarl import URL

import gateway.model as m
from adapters.cas.bodies import FileBody
from adapters.cas.wire import (
    CONFIGURED_PREFIX,
    DEFAULT_ENVIRONMENT,
    NOTES_STORE,
    CustomTool,
    ModelChoice,
    NewAgent,
    NewEnvironment,
    NewMemory,
    NewMemoryStore,
    NewVault,
    Tool,
)
from gateway.client import HttpClient, members
from gateway.errors import BackendFailed, Invalid
from gateway.http import validate
from gateway.json_values import JsonObject
from gateway.ports import AgentDefinition, PastResource, RemoteAddress, ResourceGroup

from .readers import CAS, read_page, require_id

VERSIONS = "earlier versions, archived ones, and the times of creation and change"
SKILLS = "skills of agents"
SECRETS = "credentials: CAS never shows secrets, so they must be entered again"
BYTES = "application/octet-stream"
DIALECT_FIELDS = ("model", "tools", "mcp_servers")
"""The fields of an agent that only CAS has, as its clients see them."""
New = TypeVar("New", bound=BaseModel)
ServerTools = Callable[[Sequence[Tool] | None, m.AgentCard], dict[str, m.Permission] | None]


class PastResources:
    """See `gateway.ports.PastResources`. A key sees what is its user's. `server_tools` reads tools."""

    unseen: Mapping[ResourceGroup, str] = {
        ResourceGroup.SCHEDULES: "CAS has no schedules",
        ResourceGroup.AGENTS: f"{VERSIONS}; {SKILLS}; {SECRETS}",
        ResourceGroup.MEMORIES: VERSIONS,
    }

    def __init__(self, address: RemoteAddress, user: str = "", *, server_tools: ServerTools) -> None:
        self._upstream, self._address, self._server_tools = HttpClient.at(address), address, server_tools

    async def read(self, group: ResourceGroup) -> AsyncIterator[PastResource]:
        found = {
            ResourceGroup.AGENTS: self._agents, ResourceGroup.MEMORIES: self._memories,
            ResourceGroup.FILES: self._files,
        }.get(group)
        if found is not None:
            async for one in found():
                yield one

    async def content(self, file_id: str) -> AsyncIterator[bytes]:
        """The bytes that the server sends, or those at the link that it sends instead."""
        place = f"/files/{quote(file_id, safe='')}/content"
        async with self._upstream.open("GET", place, headers={"Accept": BYTES}) as answer:
            if answer.content_type == BYTES:
                while chunk := await answer.read_body():
                    yield chunk
                return
        link = URL(str(members(await self._upstream.json("GET", place)).get("url")))
        if link.host is None:
            raise BackendFailed("the server sends no link to a file")
        other = HttpClient(str(link.origin()), timeouts=self._address.patience)
        try:
            async with other.open("GET", link) as answer:
                while chunk := await answer.read_body():
                    yield chunk
        finally:
            await other.close()

    async def close(self) -> None:
        await self._upstream.close()

    # -- groups ---------------------------------------------------------------------------------------------------

    async def _agents(self) -> AsyncIterator[PastResource]:
        async for body in self._listed("/environments"):
            new = read_as(NewEnvironment, body)
            if _id(body) != DEFAULT_ENVIRONMENT:
                yield PastResource(kind="environment", resource_id=_id(body), body={
                    **_common(new), "config": new.config.model_dump(exclude_none=True)})
        async for body in self._listed("/vaults"):
            vault = read_as(NewVault, body)
            yield PastResource(kind="vault", resource_id=_id(body), unseen=(SECRETS,), body={
                "name": vault.display_name, "metadata": dict(vault.metadata or {})})
        async for body in self._listed("/agents"):
            yield self._agent(_id(body), read_as(NewAgent, body))

    def _agent(self, agent_id: str, new: NewAgent) -> PastResource:
        given = new.model_dump(exclude_unset=True)
        definition = AgentDefinition(
            name=new.name, description=new.description, system=new.system,
            model=new.model.id if isinstance(new.model, ModelChoice) else new.model, metadata=dict(new.metadata or {}),
            client_tools=tuple(
                m.ToolSpec(name=tool.name, description=tool.description, parameters=tool.input_schema)
                for tool in new.tools or () if isinstance(tool, CustomTool)),
            mcp_servers=tuple(given.get("mcp_servers") or ()),
            extra={CAS.table.dialect: {word: given[word] for word in DIALECT_FIELDS if word in given}},
        )
        return PastResource(
            kind="agent", resource_id=agent_id, body=to_builtins(definition),
            agent=agent_id.removeprefix(CONFIGURED_PREFIX), unseen=(SKILLS,) if new.skills else (),
            tools=lambda card: self._server_tools(new.tools, card),
        )

    async def _memories(self) -> AsyncIterator[PastResource]:
        async for body in self._listed("/memory_stores"):
            store_id = _id(body)
            if store_id != NOTES_STORE:
                yield PastResource(
                    kind="memory_store", resource_id=store_id, body=_common(read_as(NewMemoryStore, body)))
            place = f"/memory_stores/{quote(store_id, safe='')}/memories"
            async for row in self._listed(place):
                whole = members(await self._upstream.json("GET", f"{place}/{quote(_id(row), safe='')}"))
                yield _memory(store_id, _id(row), read_as(NewMemory, whole))

    async def _files(self) -> AsyncIterator[PastResource]:
        async for body in self._listed("/files"):
            file = CAS.read(FileBody.row, body, "a file")
            yield PastResource(kind="file", resource_id=_id(body), body={
                "name": str(file["name"] or _id(body)), "media_type": str(file["media_type"] or BYTES),
                "metadata": members(file["metadata"]),
            })

    async def _listed(self, path: str) -> AsyncIterator[JsonObject]:
        """All of a list, oldest first."""
        page: str | None = None
        while True:
            items, page = await read_page(self._upstream, path, page)
            for item in items:
                yield item
            if page is None or not items:
                return


def read_as(model: type[New], body: JsonObject) -> New:
    """What a client would have sent to make this; raises `Invalid` if that could not be made here."""
    fields = {name: body[name] for name in model.model_fields if body.get(name) is not None}
    try:
        return validate(model, fields)
    except Invalid as error:
        raise BackendFailed(f"'{body.get('id')}' of the server cannot be understood: {error.message}") from None


def _memory(store_id: str, memory_id: str, new: NewMemory) -> PastResource:
    if store_id == NOTES_STORE:
        return PastResource(kind="note", resource_id=memory_id, body={"content": new.content})
    raw = new.content.encode()
    return PastResource(kind="memory", resource_id=memory_id, parent=store_id, parent_kind="memory_store", body={
        "path": new.path, "content": new.content, "sha256": sha256(raw).hexdigest(), "size": len(raw),
        "metadata": dict(new.metadata or {}),
    })


def _common(new: NewEnvironment | NewMemoryStore) -> JsonObject:
    metadata: dict[str, Any] = new.metadata or {}
    return {"name": new.name, "description": new.description, "metadata": metadata}


def _id(body: JsonObject) -> str:
    found = body.get("id")
    return require_id(found if isinstance(found, str) else None, "a list")
