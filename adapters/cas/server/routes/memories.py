"""CAS's memory stores and their memories, which are texts by path."""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

from aiohttp import web

from adapters.cas.server import resource_views as views
from adapters.cas.server.notes_store import MemoryStores, Notes, unchangeable
from adapters.cas.server.paging import (
    CREATED_QUERY,
    created_within,
    fetch_page,
    listed_answers,
    page_reply,
    page_request,
)
from adapters.cas.server.resource_routes import (
    Handler,
    ResourceDraft,
    ResourceDrafts,
    ResourceHandlers,
    ResourceKind,
    ResourceRoutes,
    StoredResources,
    not_found_as,
    updated_metadata,
)
from adapters.cas.wire import NOTES_STORE, CasSettings, MemoryChange, MemoryStoreChange, NewMemory, NewMemoryStore
from gateway.errors import Conflict, Invalid, NotFound
from gateway.field_errors import quote_value
from gateway.http import OWNER, Answers, Context, json_response, parse_whole_number
from gateway.ports import Resource
from gateway.search_terms import path_terms

MAX_MEMORIES = 2000
"""How many memories a store holds."""

PlacedVersion = tuple[int, Resource]
"""A version of a memory, and its place among those of its store."""

STORE_LOCKS: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""A lock per store: a request that finds a path free takes it before the next one looks."""


MEMORY_STORE = ResourceKind("memory_store", "Memory store", "memstore")
VIEWS = {"basic", "full"}
MEMORY = ResourceKind(
    "memory", "Memory", "mem", MEMORY_STORE, MAX_MEMORIES,
    filters={"include_archived": bool, "path_prefix": str, "view": VIEWS}, views={"view": VIEWS},
    conditions={"expected_content_sha256": str})


class MemoryStoreRoutes:
    """The routes of memory stores."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        routes = ResourceRoutes(context, MEMORY_STORE, self._body, source=memory_stores(context))
        drafts = ResourceDrafts(routes, NewMemoryStore, self._draft, MemoryStoreChange, self._changed)
        self.handlers = ResourceHandlers(
            kind=MEMORY_STORE, new=NewMemoryStore, change=MemoryStoreChange, 
            create=drafts.create, listed=routes.listed, get=routes.get, update=unchangeable(drafts.update),
            archive=unchangeable(routes.archive), delete=unchangeable(routes.delete),
        )

    async def _draft(self, request: web.Request, new: NewMemoryStore) -> ResourceDraft:
        return ResourceDraft({
            "name": new.name, "description": new.description,
            "metadata": updated_metadata(self._context, {}, new.metadata),
        })

    async def _changed(self, request: web.Request, change: MemoryStoreChange, old: Resource) -> ResourceDraft:
        has_description = "description" in change.model_fields_set
        return ResourceDraft({
            "name": change.name or old.body["name"],
            "description": change.description if has_description else old.body["description"],
            "metadata": updated_metadata(self._context, old.body["metadata"], change.metadata),
        })

    async def _body(self, request: web.Request, found: Resource) -> Any:
        is_shared = found.resource_id == NOTES_STORE
        memories = await (Notes(self._context, MEMORY).all(found.owner) if is_shared
                          else _memories_of(self._context, found.owner, found.resource_id))
        size = sum(memory.body["size"] for memory in memories)
        return views.memory_store_body(self._context.table, found, len(memories), size)


class MemoryRoutes:
    """The routes of the memories of a store, and of their versions."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        stores = memory_stores(context)
        self._stored = ResourceRoutes(context, MEMORY, self._body, is_listed=_is_listed, parents=stores)
        self._notes = ResourceRoutes(
            context, MEMORY, self._body, is_listed=_is_listed, parents=stores, source=Notes(context, MEMORY))
        drafts = ResourceDrafts(self._stored, NewMemory, self._draft, MemoryChange, self._changed)
        self.handlers = ResourceHandlers(
            kind=MEMORY, new=NewMemory, change=MemoryChange, 
            create=unchangeable(_locked(drafts.create)), listed=self._listed, get=self._get,
            update=unchangeable(_locked(drafts.update)), archive=unchangeable(self._stored.archive),
            delete=unchangeable(_locked(self._delete)),
        )

    async def _listed(self, request: web.Request) -> web.Response:
        return await self._routes(request).listed(request)

    async def _get(self, request: web.Request) -> web.Response:
        return await self._routes(request).get(request)

    def _routes(self, request: web.Request) -> ResourceRoutes:
        return self._notes if request.match_info["parent"] == NOTES_STORE else self._stored

    async def _draft(self, request: web.Request, new: NewMemory) -> ResourceDraft:
        await self._must_be_free(request, new.path)
        return _memory_draft(new.path, new.content, updated_metadata(self._context, {}, new.metadata))

    async def _changed(self, request: web.Request, change: MemoryChange, old: Resource) -> ResourceDraft:
        _check_unchanged(change.expected, old)
        path = change.path or old.body["path"]
        if path != old.body["path"]:
            await self._must_be_free(request, path)
        content = old.body["content"] if change.content is None else change.content
        return _memory_draft(path, content, updated_metadata(self._context, old.body["metadata"], change.metadata))

    async def _body(self, request: web.Request, found: Resource) -> Any:
        """A list shows the paths of memories; a single memory shows its text, unless the client wants another view."""
        one = "id" in request.match_info or request.method == "POST"
        return views.memory_body(
            self._context.table, found, whole=_view_param(request, "full" if one else "basic") == "full"
        )

    async def _delete(self, request: web.Request) -> web.Response:
        _check_unchanged(request.query.get("expected_content_sha256"), await self._stored.found(request))
        return await self._stored.delete(request)

    @listed_answers("memory_version", {**CREATED_QUERY, "memory_id": str, "operation": str, "view": VIEWS})
    async def versions(self, request: web.Request) -> web.Response:
        """The versions of all memories of a store, newest first; a deleted memory has none."""
        store, query = await self._stored.parent(request), request.query
        memories = await _memories_of(self._context, request[OWNER], store)
        found = [version for memory in memories if query.get("memory_id") in (None, "", memory.resource_id)
                 for version in await self._context.resources.versions(MEMORY.name, request[OWNER], memory.resource_id)]
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
            keep=lambda row: operation in (None, "", views.operation(row[1])) and row[1].updated_at in in_time,
        )
        return await page_reply(self._context.table, page, [shown(row[1]) for row in page.items])

    @Answers("memory_version", query={"view": VIEWS})
    async def version(self, request: web.Request) -> web.Response:
        store, version_id = await self._stored.parent(request), request.match_info["version"]
        memory, _, digits = version_id.removeprefix("memver_").rpartition("_")
        with not_found_as("Memory version", version_id):
            number = parse_whole_number(digits)
            if number is None:
                raise NotFound(version_id)
            found = await self._context.resources.get(MEMORY.name, request[OWNER], f"{MEMORY.prefix}_{memory}", number)
            if found.parent != store or views.version_id(found) != version_id:
                raise NotFound(version_id)
        return json_response(self._version_view(request, "full")(found))

    def _version_view(self, request: web.Request, otherwise: str) -> Callable[[Resource], Any]:
        whole = _view_param(request, otherwise) == "full"
        return lambda found: views.memory_version_body(self._context.table, found, whole=whole)

    async def _must_be_free(self, request: web.Request, path: str) -> None:
        there = await self._context.resources.with_terms(MEMORY.name, request[OWNER], path_terms(path))
        if any(memory.parent == request.match_info["parent"] for memory in there):
            raise Conflict(f"path: there is a memory at '{path}' already", param="path")


def memory_stores(context: Context[CasSettings]) -> MemoryStores:
    return MemoryStores(context, StoredResources(context, MEMORY_STORE), context.clock())


async def _memories_of(context: Context[CasSettings], owner: str, store: str) -> Sequence[Resource]:
    return await context.resources.list(MEMORY.name, owner, parent=store, limit=MAX_MEMORIES)


def _memory_draft(path: str, content: str, metadata: dict[str, str]) -> ResourceDraft:
    raw = content.encode()
    return ResourceDraft({
        "path": path, "content": content, "sha256": sha256(raw).hexdigest(), "size": len(raw), "metadata": metadata,
    })


def _is_listed(request: web.Request, found: Resource) -> bool:
    path: str = found.body["path"]
    return not found.body.get("disabled") and path.startswith(request.query.get("path_prefix", ""))


def _view_param(request: web.Request, otherwise: str) -> str:
    view = request.query.get("view") or otherwise
    if view not in ("basic", "full"):
        raise Invalid(f"view: must be 'basic' or 'full', not {quote_value(view)}", param="view")
    return view


def _locked(handler: Handler) -> Handler:
    """The handler, which no other request to the same store overtakes."""
    async def locked(request: web.Request) -> web.StreamResponse:
        async with STORE_LOCKS.setdefault(request.match_info["parent"], asyncio.Lock()):
            return await handler(request)

    return locked


def _check_unchanged(expected: str | None, found: Resource) -> None:
    if expected not in (None, found.body["sha256"]):
        raise Conflict(f"Memory '{found.resource_id}' has changed since you read it.", param="content_sha256")
