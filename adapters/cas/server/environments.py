"""CAS's environments, which are stored and shown; the backend decides where an agent runs."""

from typing import Any

from aiohttp import web

from adapters.cas.wire import (
    DEFAULT_ENVIRONMENT,
    CasSettings,
    EnvironmentChange,
    EnvironmentConfig,
    InlineEnvironment,
    Networking,
    NewEnvironment,
    Packages,
)
from gateway.errors import Forbidden
from gateway.http import OWNER, Context
from gateway.ids import random_id
from gateway.ports import Resource

from . import resource_views as views
from .resource_routes import ResourceDraft, ResourceRoutes, updated_metadata

UNNAMED_ENVIRONMENT = "Session Environment"


class EnvironmentRoutes(ResourceRoutes):
    kind, noun, prefix = "environment", "Environment", "env"
    new, change = NewEnvironment, EnvironmentChange

    async def draft(self, request: web.Request, said: Any, old: Resource | None) -> ResourceDraft:
        return ResourceDraft(environment_record(said) if old is None else _changed_record(self.context, old.body, said))

    async def body_of(self, request: web.Request, found: Resource) -> Any:
        return views.environment_body(self.context.table, found)

    async def found(self, request: web.Request) -> Resource:
        return (
            _default_environment(self.context, request[OWNER]) if _is_default(request) else await super().found(request)
        )

    async def update(self, request: web.Request) -> web.Response:
        _check_changeable(request)
        return await super().update(request)

    async def archive(self, request: web.Request) -> web.Response:
        _check_changeable(request)
        return await super().archive(request)

    async def delete(self, request: web.Request) -> web.Response:
        _check_changeable(request)
        return await super().delete(request)


def _is_default(request: web.Request) -> bool:
    return request.match_info["id"] == DEFAULT_ENVIRONMENT


def _check_changeable(request: web.Request) -> None:
    if _is_default(request):
        raise Forbidden(
            f"Environment '{DEFAULT_ENVIRONMENT}' is the server's own and cannot be changed here; make one of yours."
        )


async def find_environment(context: Context[CasSettings], owner: str, resource_id: str) -> Resource:
    if resource_id == DEFAULT_ENVIRONMENT:
        return _default_environment(context, owner)
    return await context.resources.get(EnvironmentRoutes.kind, owner, resource_id)


def _default_environment(context: Context[CasSettings], owner: str) -> Resource:
    body = {"name": "Default", "description": None, "metadata": {}, "config": _whole_config(EnvironmentConfig())}
    return Resource(
        kind=EnvironmentRoutes.kind, resource_id=DEFAULT_ENVIRONMENT, owner=owner, ordinal=0, version=1,
        created_at=context.started_at, updated_at=context.started_at, body=body,
    )


async def create_environment(context: Context[CasSettings], owner: str, said: InlineEnvironment) -> Resource:
    """An environment that a new session describes."""
    return await context.resources.create(
        EnvironmentRoutes.kind, owner, environment_record(said), resource_id=random_id(EnvironmentRoutes.prefix),
    )


def environment_record(said: InlineEnvironment) -> dict[str, Any]:
    return {
        "name": (said.name or "").strip() or UNNAMED_ENVIRONMENT, "description": said.description,
        "metadata": said.metadata or {}, "config": _whole_config(said.config),
    }


def _changed_record(context: Context[CasSettings], old: dict[str, Any], said: EnvironmentChange) -> dict[str, Any]:
    return {
        "name": said.name or old["name"],
        "description": said.description if "description" in said.model_fields_set else old["description"],
        "metadata": updated_metadata(context, old["metadata"], said.metadata),
        "config": _whole_config(said.config) if said.config else old["config"],
    }


def _whole_config(said: EnvironmentConfig) -> dict[str, Any]:
    """The complete configuration: a cloud environment always has networking and packages."""
    if said.type == "cloud":
        said = said.model_copy(update={
            "networking": said.networking or Networking(), "packages": said.packages or Packages(),
        })
    return said.model_dump(exclude_none=True)
