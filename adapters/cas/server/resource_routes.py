"""The routes that every kind of CAS resource has: create, get, list, update, archive and delete."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from aiohttp import web
from pydantic import BaseModel

from adapters.cas.wire import CasSettings, MetadataLimits
from gateway.errors import Conflict, GatewayError, NotFound
from gateway.http import OWNER, Context, json_response, read_json, validate
from gateway.ids import random_id
from gateway.ports import Resource

from . import resource_views as views
from .paging import bool_param, fetch_page, page_reply, page_request

__all__ = [
    "ResourceDraft",
    "ResourceRoutes",
    "not_found_as",
    "routes_of_kind",
    "updated_metadata",
]


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
    context: Context[CasSettings], old: dict[str, str], change: dict[str, str | None] | None
) -> dict[str, str]:
    """Metadata after a change: it replaces the old or, if the settings say so, merges into it; a null removes a key."""
    if change is None:
        return old
    base = old if context.settings.metadata == "merge" else {}
    merged = {key: value for key, value in {**base, **change}.items() if value is not None}
    return validate(MetadataLimits, {"metadata": merged}).metadata


class ResourceRoutes:
    """The routes of one kind of resource; each kind defines how it is made, changed and shown."""

    kind: ClassVar[str]
    noun: ClassVar[str]
    prefix: ClassVar[str]
    new: ClassVar[type[BaseModel]]
    change: ClassVar[type[BaseModel]]
    parent_routes: ClassVar["type[ResourceRoutes] | None"] = None
    """The kind that it belongs to."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self.context = context

    # -- what a kind says -----------------------------------------------------------------------------------------

    async def draft(self, request: web.Request, said: Any, old: Resource | None) -> ResourceDraft:
        """The resource to store: what the client sent, over the old one."""
        raise NotImplementedError

    async def body_of(self, request: web.Request, found: Resource) -> Any:
        raise NotImplementedError

    def is_listed(self, request: web.Request, found: Resource) -> bool:
        """Whether a list with this query has it."""
        return True

    # -- routes ---------------------------------------------------------------------------------------------------

    async def create(self, request: web.Request) -> web.Response:
        parent = await self.parent(request, changing=True)
        draft = await self.draft(request, await read_json(request, self.new), None)
        made = await self.context.resources.create(
            self.kind, request[OWNER], draft.body, secrets=draft.secrets, parent=parent,
            resource_id=random_id(self.prefix),
        )
        return json_response(await self.body_of(request, made), 201)

    async def get(self, request: web.Request) -> web.Response:
        return json_response(await self.body_of(request, await self.found(request)))

    async def listed(self, request: web.Request) -> web.Response:
        parent, archived = await self.parent(request), bool_param(request.query, "include_archived")

        async def fetch(**window: Any) -> Sequence[Resource]:
            return await self.page(request[OWNER], parent=parent, archived=archived, **window)

        page = await fetch_page(
            page_request(request.query), fetch, place_of=lambda one: one.ordinal,
            find=lambda resource_id: self.find(request[OWNER], resource_id),
            keep=lambda one: self.is_listed(request, one),
        )
        return await page_reply(self.context.table, page, [await self.body_of(request, one) for one in page.items])

    async def update(self, request: web.Request) -> web.Response:
        await self.parent(request, changing=True)
        old = await self.found(request)
        self.must_be_open(old)
        draft = await self.draft(request, await read_json(request, self.change), old)
        if draft == ResourceDraft(old.body):
            return json_response(await self.body_of(request, old))
        kept = await self.context.resources.update(
            self.kind, request[OWNER], old.resource_id, draft.body, secrets=draft.secrets, expected=old.version,
        )
        return json_response(await self.body_of(request, kept))

    async def archive(self, request: web.Request) -> web.Response:
        found = await self.found(request)
        archived = await self.context.resources.archive(self.kind, request[OWNER], found.resource_id)
        return json_response(await self.body_of(request, archived))

    async def delete(self, request: web.Request) -> web.Response:
        found = await self.found(request)
        await self.context.resources.delete(self.kind, request[OWNER], found.resource_id)
        return json_response(views.deleted_body(self.context.table, self.kind, found.resource_id))

    # -- finding --------------------------------------------------------------------------------------------------

    async def found(self, request: web.Request) -> Resource:
        """The resource of the path, which must belong to the parent in the path."""
        parent = await self.parent(request)
        resource_id = request.match_info["id"]
        with not_found_as(self.noun, resource_id):
            found = await self.find(request[OWNER], resource_id)
            if found.parent != parent:
                raise NotFound(resource_id)
        return found

    async def find(self, owner: str, resource_id: str) -> Resource:
        return await self.context.resources.get(self.kind, owner, resource_id)

    async def page(self, owner: str, **window: Any) -> Sequence[Resource]:
        return await self.context.resources.list(self.kind, owner, **window)

    async def parent(self, request: web.Request, *, changing: bool = False) -> str:
        """The id of the parent; nothing below an archived one can be changed."""
        if self.parent_routes is None:
            return ""
        parent_id = request.match_info["parent"]
        with not_found_as(self.parent_routes.noun, parent_id):
            above = await self.context.resources.get(self.parent_routes.kind, request[OWNER], parent_id)
        if changing:
            self.parent_routes.must_be_open(above)
        return above.resource_id

    @classmethod
    def must_be_open(cls, found: Resource) -> None:
        if found.archived_at is not None:
            raise Conflict(f"{cls.noun} '{found.resource_id}' is archived and cannot be changed.")


def routes_of_kind(path: str, shelf: ResourceRoutes) -> list[web.RouteDef]:
    """The routes that every kind has."""
    return [
        web.post(path, shelf.create),
        web.get(path, shelf.listed),
        web.get(f"{path}/{{id}}", shelf.get),
        web.post(f"{path}/{{id}}", shelf.update),
        web.put(f"{path}/{{id}}", shelf.update),
        web.delete(f"{path}/{{id}}", shelf.delete),
        web.post(f"{path}/{{id}}/archive", shelf.archive),
    ]
