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
from gateway.http import OWNER, Context, json_response
from gateway.ids import random_id
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import Resource

from . import resource_views as views
from .resource_routes import (
    Handler,
    ResourceDraft,
    ResourceDrafts,
    ResourceHandlers,
    ResourceKind,
    ResourceRoutes,
    updated_metadata,
)

UNNAMED_ENVIRONMENT = "Session Environment"


ENVIRONMENT = ResourceKind("environment", "Environment", "env")


class EnvironmentRoutes:
    """The routes of environments; the default one of the server is shown, and cannot be changed."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        self._stored = ResourceRoutes(context, ENVIRONMENT, self._body)
        drafts = ResourceDrafts(self._stored, NewEnvironment, self._draft, EnvironmentChange, self._changed)
        self.handlers = ResourceHandlers(
            kind=ENVIRONMENT, new=NewEnvironment, change=EnvironmentChange, 
            create=drafts.create, listed=self._stored.listed, get=self._get, update=_guarded(drafts.update),
            archive=_guarded(self._stored.archive), delete=_guarded(self._stored.delete),
        )

    async def _draft(self, request: web.Request, new: NewEnvironment) -> ResourceDraft:
        return ResourceDraft(environment_record(new))

    async def _changed(self, request: web.Request, change: EnvironmentChange, old: Resource) -> ResourceDraft:
        return ResourceDraft(_changed_record(self._context, old.body, change))

    async def _body(self, request: web.Request, found: Resource) -> JsonValue:
        return views.environment_body(self._context.table, found)

    async def _get(self, request: web.Request) -> web.Response:
        if not _is_default(request):
            return await self._stored.get(request)
        return json_response(await self._body(request, _default_environment(self._context, request[OWNER])))


def _is_default(request: web.Request) -> bool:
    return request.match_info["id"] == DEFAULT_ENVIRONMENT


def _guarded(handler: Handler) -> Handler:
    """The handler, which refuses to change the default environment."""
    async def guarded(request: web.Request) -> web.StreamResponse:
        if _is_default(request):
            raise Forbidden(
                f"Environment '{DEFAULT_ENVIRONMENT}' is the server's own and cannot be changed here; "
                "make one of yours."
            )
        return await handler(request)

    return guarded


async def find_environment(context: Context[CasSettings], owner: str, resource_id: str) -> Resource:
    if resource_id == DEFAULT_ENVIRONMENT:
        return _default_environment(context, owner)
    return await context.resources.get(ENVIRONMENT.name, owner, resource_id)


def _default_environment(context: Context[CasSettings], owner: str) -> Resource:
    body = {"name": "Default", "description": None, "metadata": {}, "config": _whole_config(EnvironmentConfig())}
    return Resource(
        kind=ENVIRONMENT.name, resource_id=DEFAULT_ENVIRONMENT, owner=owner, ordinal=0, version=1,
        created_at=context.started_at, updated_at=context.started_at, body=body,
    )


async def create_environment(context: Context[CasSettings], owner: str, body: InlineEnvironment) -> Resource:
    """An environment that a new session describes."""
    return await context.resources.create(
        ENVIRONMENT.name, owner, environment_record(body), resource_id=random_id(ENVIRONMENT.prefix),
    )


def environment_record(body: InlineEnvironment) -> dict[str, Any]:
    return {
        "name": (body.name or "").strip() or UNNAMED_ENVIRONMENT, "description": body.description,
        "metadata": body.metadata or {}, "config": _whole_config(body.config),
    }


def _changed_record(context: Context[CasSettings], old: dict[str, Any], body: EnvironmentChange) -> dict[str, Any]:
    return {
        "name": body.name or old["name"],
        "description": body.description if "description" in body.model_fields_set else old["description"],
        "metadata": updated_metadata(context, old["metadata"], body.metadata),
        "config": _whole_config(body.config) if body.config else old["config"],
    }


def _whole_config(body: EnvironmentConfig) -> JsonObject:
    """The complete configuration: a cloud environment always has networking and packages."""
    if body.type == "cloud":
        body = body.model_copy(update={
            "networking": body.networking or Networking(), "packages": body.packages or Packages(),
        })
    return body.model_dump(exclude_none=True)
