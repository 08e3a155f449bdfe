"""CAS's memory stores and their memories, which are texts by path."""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

from aiohttp import web

from adapters.cas.server import resource_views as views
from adapters.cas.server.paging import created_within, fetch_page, page_reply, page_request
from adapters.cas.server.resource_routes import ResourceDraft, ResourceRoutes, not_found_as, updated_metadata
from adapters.cas.wire import MemoryChange, MemoryStoreChange, NewMemory, NewMemoryStore
from gateway.errors import Conflict, Invalid, NotFound
from gateway.field_errors import quote_value
from gateway.http import OWNER, json_response, parse_whole_number
from gateway.ports import Resource

MAX_MEMORIES = 2000
"""How many memories a store holds."""

PlacedVersion = tuple[int, Resource]
"""A version of a memory, and its place among those of its store."""

STORE_LOCKS: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""A lock per store: a request that finds a path free takes it before the next one looks."""


class MemoryStoreRoutes(ResourceRoutes):
    kind, noun, prefix = "memory_store", "Memory store", "memstore"
    new, change = NewMemoryStore, MemoryStoreChange

    async def draft(self, request: web.Request, said: Any, old: Resource | None) -> ResourceDraft:
        was = old.body if old else {"name": None, "description": None, "metadata": {}}
        told = "description" in said.model_fields_set
        return ResourceDraft({
            "name": said.name or was["name"], "description": said.description if told else was["description"],
            "metadata": updated_metadata(self.context, was["metadata"], said.metadata),
        })

    async def body_of(self, request: web.Request, found: Resource) -> Any:
        memories = await self.context.resources.list(
            MemoryRoutes.kind, found.owner, parent=found.resource_id, limit=MAX_MEMORIES,
        )
        size = sum(memory.body["size"] for memory in memories)
        return views.memory_store_body(self.context.table, found, len(memories), size)


class MemoryRoutes(ResourceRoutes):
    kind, noun, prefix = "memory", "Memory", "mem"
    new, change = NewMemory, MemoryChange
    parent_routes = MemoryStoreRoutes

    async def create(self, request: web.Request) -> web.Response:
        async with _store_lock(request):
            return await super().create(request)

    async def update(self, request: web.Request) -> web.Response:
        async with _store_lock(request):
            return await super().update(request)

    async def draft(self, request: web.Request, said: Any, old: Resource | None) -> ResourceDraft:
        if old is not None:
            _check_unchanged(said.expected, old)
        was = old.body if old else {"metadata": {}}
        path = said.path or was["path"]
        if path != was.get("path"):
            await self._must_be_free(request, path)
        content: str = was["content"] if said.content is None else said.content
        raw = content.encode()
        return ResourceDraft({
            "path": path, "content": content, "sha256": sha256(raw).hexdigest(), "size": len(raw),
            "metadata": updated_metadata(self.context, was["metadata"], said.metadata),
        })

    async def body_of(self, request: web.Request, found: Resource) -> Any:
        """A list shows the paths of memories; a single memory shows its text, unless the client wants another view."""
        one = "id" in request.match_info or request.method == "POST"
        return views.memory_body(
            self.context.table, found, whole=_view_param(request, "full" if one else "basic") == "full"
        )

    async def versions(self, request: web.Request) -> web.Response:
        """The versions of all memories of a store, newest first; a deleted memory has none."""
        store, query = await self.parent(request), request.query
        memories = await self.page(request[OWNER], parent=store, limit=MAX_MEMORIES)
        found = [version for memory in memories if query.get("memory_id") in (None, "", memory.resource_id)
                 for version in await self.context.resources.versions(self.kind, request[OWNER], memory.resource_id)]
        rows = [*enumerate(sorted(found, key=lambda one: (one.updated_at, one.ordinal, one.version)), 1)]
        operation, in_time, shown = query.get("operation"), created_within(query), self._version_view(request, "basic")

        async def fetch(
            *, after: int | None, before: int | None, limit: int, oldest_first: bool
        ) -> Sequence[PlacedVersion]:
            some = [row for row in rows if (after or 0) < row[0] < (before or len(rows) + 1)]
            return (some if oldest_first else some[::-1])[:limit]

        async def find(version_id: str) -> PlacedVersion:
            for row in rows:
                if views.version_id(row[1]) == version_id:
                    return row
            raise NotFound(version_id)

        page = await fetch_page(
            page_request(query), fetch, place_of=lambda row: row[0], find=find,
            keep=lambda row: operation in (None, "", views.operation(row[1])) and in_time(row[1].updated_at),
        )
        return await page_reply(self.context.table, page, [shown(row[1]) for row in page.items])

    async def version(self, request: web.Request) -> web.Response:
        store, version_id = await self.parent(request), request.match_info["version"]
        memory, _, digits = version_id.removeprefix("memver_").rpartition("_")
        with not_found_as("Memory version", version_id):
            number = parse_whole_number(digits)
            if number is None:
                raise NotFound(version_id)
            found = await self.context.resources.get(self.kind, request[OWNER], f"{self.prefix}_{memory}", number)
            if found.parent != store or views.version_id(found) != version_id:
                raise NotFound(version_id)
        return json_response(self._version_view(request, "full")(found))

    def _version_view(self, request: web.Request, otherwise: str) -> Callable[[Resource], Any]:
        whole = _view_param(request, otherwise) == "full"
        return lambda found: views.memory_version_body(self.context.table, found, whole=whole)

    def is_listed(self, request: web.Request, found: Resource) -> bool:
        path: str = found.body["path"]
        return path.startswith(request.query.get("path_prefix", ""))

    async def delete(self, request: web.Request) -> web.Response:
        async with _store_lock(request):
            _check_unchanged(request.query.get("expected_content_sha256"), await self.found(request))
            return await super().delete(request)

    async def _must_be_free(self, request: web.Request, path: str) -> None:
        there = await self.context.resources.list(
            self.kind, request[OWNER], parent=request.match_info["parent"], limit=MAX_MEMORIES,
        )
        if any(memory.body["path"] == path for memory in there):
            raise Conflict(f"path: there is a memory at '{path}' already", param="path")
        if len(there) >= MAX_MEMORIES:
            raise Conflict(f"a memory store holds {MAX_MEMORIES} memories, and this one is full")


def _view_param(request: web.Request, otherwise: str) -> str:
    view = request.query.get("view") or otherwise
    if view not in ("basic", "full"):
        raise Invalid(f"view: must be 'basic' or 'full', not {quote_value(view)}", param="view")
    return view


def _store_lock(request: web.Request) -> asyncio.Lock:
    return STORE_LOCKS.setdefault(request.match_info["parent"], asyncio.Lock())


def _check_unchanged(expected: str | None, found: Resource) -> None:
    if expected not in (None, found.body["sha256"]):
        raise Conflict(f"Memory '{found.resource_id}' has changed since you read it.", param="content_sha256")
