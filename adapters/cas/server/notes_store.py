"""The memories that dialects share, as one memory store of CAS: it can be read and given to sessions, not changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from aiohttp import web
from msgspec.structs import replace

from adapters.cas.wire import NOTES_STORE, CasSettings
from gateway.errors import Forbidden, NotFound
from gateway.http import Context, parse_whole_number
from gateway.ports import Resource
from gateway.resources import MAX_MEMORIES, Memories, MemoryFilter, StoredMemory

from .resource_routes import Handler, ResourceKind, StoredResources

PREFIX = "mem_note"
DESCRIPTION = "What is remembered of you from one session to the next; sessions with this store are told what fits."


def notes_store(owner: str, at: float) -> Resource:
    """The memory store of the shared memories, which every user has."""
    return Resource(
        kind="memory_store", resource_id=NOTES_STORE, owner=owner, ordinal=0, version=1, created_at=at, updated_at=at,
        body={"name": "Memories", "description": DESCRIPTION, "metadata": {}},
    )


@dataclass(frozen=True, slots=True)
class MemoryStores:
    """Finds the stored memory stores, and the store of the shared memories, which is the oldest."""

    context: Context[CasSettings]
    stored: StoredResources
    started_at: float

    async def find(self, owner: str, resource_id: str) -> Resource:
        if resource_id == NOTES_STORE:
            return notes_store(owner, self.started_at)
        return await self.stored.find(owner, resource_id)

    async def page(
        self, owner: str, *, parent: str, archived: bool, after: int | None, before: int | None, limit: int,
        oldest_first: bool,
    ) -> Sequence[Resource]:
        found = await self.stored.page(
            owner, parent=parent, archived=archived, after=after, before=before, limit=limit, oldest_first=oldest_first)
        if (after is None or after < 0) and (before is None or before > 0):
            own = notes_store(owner, self.started_at)
            found = [own, *found] if oldest_first else [*found, own]
        return found[:limit]


@dataclass(frozen=True, slots=True)
class Notes:
    """Finds the shared memories as the memories of their store."""

    context: Context[CasSettings]
    kind: ResourceKind

    async def find(self, owner: str, resource_id: str) -> Resource:
        number = parse_whole_number(resource_id.removeprefix(PREFIX), 15)
        if number is None or not resource_id.startswith(PREFIX):
            raise NotFound(resource_id)
        return self._shown(await Memories(self.context.resources).find(owner, number))

    async def page(
        self, owner: str, *, parent: str, archived: bool, after: int | None, before: int | None, limit: int,
        oldest_first: bool,
    ) -> Sequence[Resource]:
        rows = await self.context.resources.list(
            "note", owner, after=after, before=before, limit=limit, oldest_first=oldest_first)
        return [self._shown(StoredMemory.of(row)) for row in rows]

    async def all(self, owner: str) -> Sequence[Resource]:
        """All shared memories that are switched on, newest first."""
        found, _ = await Memories(self.context.resources).search(
            owner, MemoryFilter(disabled=False), limit=MAX_MEMORIES)
        return [self._shown(one) for one in found]

    def _shown(self, stored: StoredMemory) -> Resource:
        content = stored.memory.content.encode()
        return replace(
            stored.resource, kind=self.kind.name, resource_id=f"{PREFIX}{stored.number}", parent=NOTES_STORE,
            body={
                "path": f"notes/{stored.number}.md", "content": stored.memory.content,
                "sha256": sha256(content).hexdigest(), "size": len(content), "metadata": {},
                "disabled": stored.memory.disabled,
            },
        )


def unchangeable(handler: Handler) -> Handler:
    """The handler of a change, which refuses to change the store of the shared memories."""
    async def guarded(request: web.Request) -> web.StreamResponse:
        if NOTES_STORE in (request.match_info.get("parent"), request.match_info.get("id")):
            raise Forbidden("the store of the memories that all dialects share can be read here, and not changed")
        return await handler(request)

    return guarded
