"""The routes that every kind of CAS resource has: create, get, list, update, archive and delete."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from aiohttp import web
from pydantic import BaseModel

from adapters.cas.wire import CasSettings, MetadataLimits
from gateway.errors import Conflict, GatewayError, NotFound
from gateway.http import OWNER, Answers, Context, Shape, described, json_response, read_json, validate
from gateway.ids import random_id
from gateway.ports import Resource

from . import resource_views as views
from .paging import bool_param, fetch_page, listed_answers, page_reply, page_request

__all__ = [
    "ResourceDraft",
    "ResourceDrafts",
    "ResourceHandlers",
    "ResourceKind",
    "ResourceRoutes",
    "not_found_as",
    "routes_of_kind",
    "updated_metadata",
]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
New = TypeVar("New", bound=BaseModel)
Change = TypeVar("Change", bound=BaseModel)


@contextmanager
def not_found_as(noun: str, resource_id: str, refusal: type[GatewayError] = NotFound) -> Iterator[None]:
    """Refuse an unknown resource with CAS's text."""
    try:
        yield
    except NotFound:
        raise refusal(f"{noun} '{resource_id}' was not found.") from None


@dataclass(frozen=True, slots=True)
class ResourceDraft:
    """A resource to be stored; without `secrets`, the old ones stay."""

    body: dict[str, Any]
    secrets: dict[str, str] | None = field(default=None, repr=False)


def updated_metadata(
    context: Context[CasSettings], old: dict[str, str], change: Mapping[str, str | None] | None
) -> dict[str, str]:
    """Metadata after a change: it replaces the old or, if the settings say so, merges into it; a null removes a key."""
    if change is None:
        return old
    base = old if context.settings.metadata == "merge" else {}
    merged = {key: value for key, value in {**base, **change}.items() if value is not None}
    return validate(MetadataLimits, {"metadata": merged}).metadata


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """The names of one kind of resource, and the kind that it belongs to."""

    name: str
    noun: str
    prefix: str
    parent: "ResourceKind | None" = None
    most_below: int | None = None
    """How many a parent may have."""
    filters: Mapping[str, Shape] = field(default_factory=lambda: {"include_archived": bool})
    """What the query of a list may have beside the page."""
    conditions: Mapping[str, Shape] = field(default_factory=dict)
    """What the query of a deletion may have."""
    views: Mapping[str, Shape] = field(default_factory=dict)
    """What the query for one of them may have."""

    def check_open(self, found: Resource) -> None:
        """Refuse to change an archived resource."""
        if found.archived_at is not None:
            raise Conflict(f"{self.noun} '{found.resource_id}' is archived and cannot be changed.")


class ResourceBody(Protocol):
    """Shows a resource to the client of this request."""

    def __call__(self, request: web.Request, found: Resource) -> Awaitable[Any]: ...


class ResourceSource(Protocol):
    """Finds resources of one kind."""

    async def find(self, owner: str, resource_id: str) -> Resource: ...
    async def page(
        self, owner: str, *, parent: str, archived: bool, after: int | None, before: int | None, limit: int,
        oldest_first: bool,
    ) -> Sequence[Resource]: ...


@dataclass(frozen=True, slots=True)
class StoredResources:
    """Finds the stored resources of one kind."""

    context: Context[CasSettings]
    kind: ResourceKind

    async def find(self, owner: str, resource_id: str) -> Resource:
        return await self.context.resources.get(self.kind.name, owner, resource_id)

    async def page(
        self, owner: str, *, parent: str, archived: bool, after: int | None, before: int | None, limit: int,
        oldest_first: bool,
    ) -> Sequence[Resource]:
        return await self.context.resources.list(
            self.kind.name, owner, parent=parent, archived=archived, after=after, before=before, limit=limit,
            oldest_first=oldest_first,
        )


class ResourceRoutes:
    """The routes that show, archive and delete the resources of one kind.

    `body` shows a resource; `is_listed` says whether a list with this query has it.
    """

    def __init__(
        self, context: Context[CasSettings], kind: ResourceKind, body: ResourceBody, *,
        is_listed: Callable[[web.Request, Resource], bool] = lambda request, found: True,
        source: ResourceSource | None = None, parents: ResourceSource | None = None,
    ) -> None:
        self.context, self.kind, self.body = context, kind, body
        self._is_listed = is_listed
        self._source = source or StoredResources(context, kind)
        self._parents = parents or (StoredResources(context, kind.parent) if kind.parent else None)

    async def get(self, request: web.Request) -> web.Response:
        return json_response(await self.body(request, await self.found(request)))

    async def listed(self, request: web.Request) -> web.Response:
        owner, parent = request[OWNER], await self.parent(request)
        archived = bool_param(request.query, "include_archived")

        async def fetch(*, after: int | None, before: int | None, limit: int, oldest_first: bool) -> Sequence[Resource]:
            return await self._source.page(
                owner, parent=parent, archived=archived, after=after, before=before, limit=limit,
                oldest_first=oldest_first,
            )

        page = await fetch_page(
            page_request(request.query), fetch, place_of=lambda one: one.ordinal,
            find=lambda resource_id: self._source.find(owner, resource_id),
            keep=lambda one: self._is_listed(request, one),
        )
        return await page_reply(self.context.table, page, [await self.body(request, one) for one in page.items])

    async def archive(self, request: web.Request) -> web.Response:
        found = await self.found(request)
        archived = await self.context.resources.archive(self.kind.name, request[OWNER], found.resource_id)
        return json_response(await self.body(request, archived))

    async def delete(self, request: web.Request) -> web.Response:
        found = await self.found(request)
        await self.context.resources.delete(self.kind.name, request[OWNER], found.resource_id)
        return json_response(views.deleted_body(self.context.table, self.kind.name, found.resource_id))

    async def found(self, request: web.Request) -> Resource:
        """The resource of the path, which must belong to the parent in the path."""
        parent = await self.parent(request)
        resource_id = request.match_info["id"]
        with not_found_as(self.kind.noun, resource_id):
            found = await self._source.find(request[OWNER], resource_id)
            if found.parent != parent:
                raise NotFound(resource_id)
        return found

    async def parent(self, request: web.Request, *, changing: bool = False) -> str:
        """The id of the parent; nothing below an archived one can be changed."""
        kind = self.kind.parent
        if kind is None or self._parents is None:
            return ""
        parent_id = request.match_info["parent"]
        with not_found_as(kind.noun, parent_id):
            above = await self._parents.find(request[OWNER], parent_id)
        if changing:
            kind.check_open(above)
        return above.resource_id


@dataclass(frozen=True, slots=True)
class ResourceDrafts(Generic[New, Change]):
    """The routes that create and update resources of one kind, from what a client sends.

    `draft` makes the resource to store of a new one, `changed` of a change and the stored resource.
    """

    routes: ResourceRoutes
    new: type[New]
    draft: Callable[[web.Request, New], Awaitable[ResourceDraft]]
    change: type[Change]
    changed: Callable[[web.Request, Change, Resource], Awaitable[ResourceDraft]]

    async def create(self, request: web.Request) -> web.Response:
        kind, resources = self.routes.kind, self.routes.context.resources
        parent = await self.routes.parent(request, changing=True)
        draft = await self.draft(request, await read_json(request, self.new))
        made = await resources.create(
            kind.name, request[OWNER], draft.body, secrets=draft.secrets, parent=parent,
            resource_id=random_id(kind.prefix), most_below=kind.most_below,
        )
        return json_response(await self.routes.body(request, made), 201)

    async def update(self, request: web.Request) -> web.Response:
        kind, resources = self.routes.kind, self.routes.context.resources
        await self.routes.parent(request, changing=True)
        old = await self.routes.found(request)
        kind.check_open(old)
        draft = await self.changed(request, await read_json(request, self.change), old)
        if draft == ResourceDraft(old.body):
            return json_response(await self.routes.body(request, old))
        kept = await resources.update(
            kind.name, request[OWNER], old.resource_id, draft.body, secrets=draft.secrets, expected=old.version,
        )
        return json_response(await self.routes.body(request, kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceHandlers:
    """The handlers of the routes that every kind has, and what clients send to make a resource or to change one."""

    kind: ResourceKind
    new: type[BaseModel]
    change: type[BaseModel]
    create: Handler
    listed: Handler
    get: Handler
    update: Handler
    archive: Handler
    delete: Handler

    @classmethod
    def of(cls, routes: ResourceRoutes, drafts: ResourceDrafts[Any, Any]) -> "ResourceHandlers":
        return cls(
            kind=routes.kind, new=drafts.new, change=drafts.change, 
            create=drafts.create, listed=routes.listed, get=routes.get, update=drafts.update, archive=routes.archive,
            delete=routes.delete,
        )


def routes_of_kind(path: str, handlers: ResourceHandlers) -> list[web.RouteDef]:
    """The routes that every kind has."""
    row, one = handlers.kind.name, f"{path}/{{id}}"
    shown = handlers.kind.views
    update = described(handlers.update, Answers(row, reads=handlers.change, query=shown))
    return [
        web.post(path, described(handlers.create, Answers(row, status=201, reads=handlers.new, query=shown))),
        web.get(path, described(handlers.listed, listed_answers(row, query=handlers.kind.filters))),
        web.get(one, described(handlers.get, Answers(row, query=shown))),
        web.post(one, update),
        web.put(one, update),
        web.delete(one, described(handlers.delete, Answers(f"deleted.{row}", query=handlers.kind.conditions))),
        web.post(f"{one}/archive", described(handlers.archive, Answers(row))),
    ]
