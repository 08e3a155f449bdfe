"""CAS's environments: kept and given back; where an agent runs is its backend's business."""

from typing import Any

from aiohttp import web

from gateway.errors import Forbidden
from gateway.ids import unguessable
from gateway.ports import Resource
from gateway.web import OWNER, Context

from . import catalog_views as views
from .catalog_shelf import Draft, Shelf, held_metadata
from .catalog_wire import (
    EnvironmentChange,
    EnvironmentConfig,
    InlineEnvironment,
    Networking,
    NewEnvironment,
    Packages,
)

UNNAMED = "Session Environment"
DEFAULT = "env_default"
"""Where the sessions are that other dialects made. It has always been there; lists have only what clients made."""


class Environments(Shelf):
    kind, noun, prefix = "environment", "Environment", "env"
    new, change = NewEnvironment, EnvironmentChange

    async def draft(self, request: web.Request, said: Any, old: Resource | None) -> Draft:
        return Draft(body_of(said) if old is None else _changed(self.house, old.body, said))

    async def shown(self, request: web.Request, found: Resource) -> Any:
        return views.environment(self.house.table, found)

    async def found(self, request: web.Request) -> Resource:
        return _default(self.house, request[OWNER]) if _is_default(request) else await super().found(request)

    async def update(self, request: web.Request) -> web.Response:
        _must_be_changeable(request)
        return await super().update(request)

    async def archive(self, request: web.Request) -> web.Response:
        _must_be_changeable(request)
        return await super().archive(request)

    async def delete(self, request: web.Request) -> web.Response:
        _must_be_changeable(request)
        return await super().delete(request)


def _is_default(request: web.Request) -> bool:
    return request.match_info["id"] == DEFAULT


def _must_be_changeable(request: web.Request) -> None:
    if _is_default(request):
        raise Forbidden(f"Environment '{DEFAULT}' is the server's own and cannot be changed here; make one of yours.")


async def found_environment(context: Context, owner: str, resource_id: str) -> Resource:
    if resource_id == DEFAULT:
        return _default(context, owner)
    return await context.resources.get(Environments.kind, owner, resource_id)


def _default(context: Context, owner: str) -> Resource:
    body = {"name": "Default", "description": None, "metadata": {}, "config": _config(EnvironmentConfig())}
    return Resource(
        kind=Environments.kind, resource_id=DEFAULT, owner=owner, ordinal=0, version=1,
        created_at=context.started_at, updated_at=context.started_at, body=body,
    )


async def made_environment(context: Context, owner: str, said: InlineEnvironment) -> Resource:
    """An environment that a new session describes."""
    return await context.resources.create(
        Environments.kind, owner, body_of(said), resource_id=unguessable(Environments.prefix),
    )


def body_of(said: InlineEnvironment) -> dict[str, Any]:
    return {
        "name": (said.name or "").strip() or UNNAMED, "description": said.description,
        "metadata": said.metadata or {}, "config": _config(said.config),
    }


def _changed(house: Context, old: dict[str, Any], said: EnvironmentChange) -> dict[str, Any]:
    return {
        "name": said.name or old["name"],
        "description": said.description if "description" in said.model_fields_set else old["description"],
        "metadata": held_metadata(house, old["metadata"], said.metadata),
        "config": _config(said.config) if said.config else old["config"],
    }


def _config(said: EnvironmentConfig) -> dict[str, Any]:
    """What was said, whole: what a cloud environment always has is there even if nobody said it."""
    if said.type == "cloud":
        said = said.model_copy(update={
            "networking": said.networking or Networking(), "packages": said.packages or Packages(),
        })
    return said.model_dump(exclude_none=True)
