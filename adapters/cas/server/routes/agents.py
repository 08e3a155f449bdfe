"""CAS's HTTP handlers for agents and models, and the routes of the other kinds of resources."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from adapters.cas.server import resource_views as views
from adapters.cas.server.agents import UserAgents
from adapters.cas.server.environments import EnvironmentRoutes
from adapters.cas.server.paging import ListPage, fetch_page, listed_answers, page_reply, page_request
from adapters.cas.server.resource_routes import (
    ResourceHandlers,
    ResourceKind,
    ResourceRoutes,
    not_found_as,
    routes_of_kind,
)
from adapters.cas.wire import AgentChange, CasSettings, NewAgent
from gateway.errors import Invalid, NotFound
from gateway.field_errors import quote_value
from gateway.http import (
    OWNER,
    Answers,
    Context,
    Row,
    described,
    json_response,
    parse_whole_number,
    read_json,
    signed_link_handler,
)
from gateway.ports import Resource
from gateway.resources import models_of

from .files import FileRoutes
from .memories import MemoryRoutes, MemoryStoreRoutes
from .skills import routes_of_skills
from .vaults import CredentialRoutes, VaultRoutes


def routes_of_resources(context: Context[CasSettings]) -> list[web.RouteDef]:
    """Every route of the resources, below the mount."""
    agents, files = AgentRoutes(context), FileRoutes(context)
    credentials, memories = CredentialRoutes(context), MemoryRoutes(context)
    return [
        *routes_of_kind("/agents", agents.handlers),
        web.get("/agents/{id}/versions", agents.versions),
        web.get("/models", agents.models),
        web.get("/models/{id}", agents.model),
        *routes_of_skills(context),
        *routes_of_kind("/environments", EnvironmentRoutes(context).handlers),
        web.post("/files", files.create),
        web.get("/files", described(files.stored.listed, listed_answers("file", {
            "include_archived": bool, "ids[]": [str], "name": str}))),
        web.get("/files/{id}", described(files.stored.get, Answers("file"))),
        web.get("/files/{id}/content", files.content),
        web.delete("/files/{id}", files.delete),
        web.get("/file-links/{link}", signed_link_handler(context.files)),
        *routes_of_kind("/vaults", VaultRoutes(context).handlers),
        *routes_of_kind("/vaults/{parent}/credentials", credentials.handlers),
        web.post("/vaults/{parent}/credentials/{id}/mcp_oauth_validate", credentials.validate),
        *routes_of_kind("/memory_stores", MemoryStoreRoutes(context).handlers),
        *routes_of_kind("/memory_stores/{parent}/memories", memories.handlers)[:-1],
        web.get("/memory_stores/{parent}/memory_versions", memories.versions),
        web.get("/memory_stores/{parent}/memory_versions/{version}", memories.version),
    ]


AGENT = ResourceKind("agent", "Agent", "agent", views={"version": int})


class _AgentSource:
    """Finds the agents of the settings beside those that clients made."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context

    async def find(self, owner: str, resource_id: str) -> Resource:
        return await UserAgents(self._context, owner).find(resource_id)

    async def page(
        self, owner: str, *, parent: str, archived: bool, after: int | None, before: int | None, limit: int,
        oldest_first: bool,
    ) -> Sequence[Resource]:
        return await UserAgents(self._context, owner).some(
            archived=archived, after=after, before=before, limit=limit, oldest_first=oldest_first,
        )


class AgentRoutes:
    """Agents: those of the settings beside those that clients made, with all their versions."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        self._stored = ResourceRoutes(context, AGENT, self._body, source=_AgentSource(context))
        self.handlers = ResourceHandlers(
            kind=AGENT, new=NewAgent, change=AgentChange, 
            create=self._create, listed=self._stored.listed, get=self._get, update=self._update,
            archive=self._archive, delete=self._delete,
        )

    def _mine(self, request: web.Request) -> UserAgents:
        return UserAgents(self._context, request[OWNER])

    async def _create(self, request: web.Request) -> web.Response:
        made = await self._mine(request).create(await read_json(request, NewAgent))
        return json_response(await self._body(request, made), 201)

    async def _get(self, request: web.Request) -> web.Response:
        agent_id, version = request.match_info["id"], _version_param(request)
        with not_found_as(AGENT.noun, agent_id if version is None else f"{agent_id}, version {version}"):
            return json_response(await self._body(request, await self._mine(request).find(agent_id, version)))

    async def _update(self, request: web.Request) -> web.Response:
        change, agent_id = await read_json(request, AgentChange), request.match_info["id"]
        with not_found_as(AGENT.noun, agent_id):
            return json_response(await self._body(request, await self._mine(request).update(agent_id, change)))

    @listed_answers("agent")
    async def versions(self, request: web.Request) -> web.Response:
        """List the versions of an agent, newest first."""
        found = await self._stored.found(request)
        all_of_them = await self._mine(request).versions(found.resource_id)

        async def fetch(*, after: int | None, before: int | None, limit: int, oldest_first: bool) -> Sequence[Resource]:
            some = [one for one in all_of_them if (after or 0) < one.version < (before or len(all_of_them) + 1)]
            return (some if oldest_first else some[::-1])[:limit]

        async def find(cursor: str) -> Resource:
            raise NotFound(cursor)  # all versions have the same id, so that an id is no place among them

        page = await fetch_page(page_request(request.query), fetch, place_of=lambda one: one.version, find=find)
        return await page_reply(self._context.table, page, [await self._body(request, one) for one in page.items])

    @Answers(Row("page", items=["model"]))
    async def models(self, request: web.Request) -> web.Response:
        """The configured agents, as models to choose from; there are never so many that they need pages."""
        shown = [
            views.model_body(self._context.table, name, card)
            for name, card in models_of(self._context.agents.values()).items()
        ]
        return await page_reply(self._context.table, ListPage(shown, False, None), shown)

    @Answers("model")
    async def model(self, request: web.Request) -> web.Response:
        name, known = request.match_info["id"], models_of(self._context.agents.values())
        if name not in known:
            raise NotFound(f"Model '{name}' was not found.")
        return json_response(views.model_body(self._context.table, name, known[name]))

    async def _body(self, request: web.Request, found: Resource) -> Any:
        card = self._context.agents.get(found.body.get("agent", ""))
        return views.agent_body(
            self._context.table, found, found.body, card, await self._mine(request).skills_of(found))

    async def _archive(self, request: web.Request) -> web.Response:
        found = await self._changeable(request)
        archived = await self._mine(request).archive(found.resource_id)
        return json_response(await self._body(request, archived))

    async def _delete(self, request: web.Request) -> web.Response:
        found = await self._changeable(request)
        await self._mine(request).delete(found.resource_id)
        return json_response(views.deleted_body(self._context.table, AGENT.name, found.resource_id))

    async def _changeable(self, request: web.Request) -> Resource:
        """The agent of the path, unless it is one of the settings."""
        with not_found_as(AGENT.noun, request.match_info["id"]):
            return await self._mine(request).changeable(request.match_info["id"])


def _version_param(request: web.Request) -> int | None:
    """The version that the query names; None for the newest one, which zero means as well."""
    value = request.query.get("version") or "0"
    number = parse_whole_number(value)
    if number is None:
        raise Invalid(f"version: must be a whole number, not {quote_value(value)}", param="version")
    return number or None
