"""CAS's HTTP handlers for agents and models, and the routes of the other kinds of resources."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from adapters.cas.server import resource_views as views
from adapters.cas.server.agents import UserAgents, models_of
from adapters.cas.server.environments import EnvironmentRoutes
from adapters.cas.server.paging import ListPage, fetch_page, page_reply, page_request
from adapters.cas.server.resource_routes import ResourceRoutes, not_found_as, routes_of_kind
from adapters.cas.wire import AgentChange, CasSettings, NewAgent
from gateway.errors import Invalid, NotFound
from gateway.field_errors import quote_value
from gateway.http import OWNER, Context, Idempotency, json_response, parse_whole_number, read_json, signed_link_handler
from gateway.ports import Resource

from .files import FileRoutes
from .memories import MemoryRoutes, MemoryStoreRoutes
from .vaults import CredentialRoutes, VaultRoutes


def routes_of_resources(context: Context[CasSettings], once: Idempotency | None = None) -> list[web.RouteDef]:
    """Every route of the resources, under the mount and its `/v1`; none runs a request with the same key twice."""
    mounts = (context.mount, f"{context.mount}/v1")
    return (once or Idempotency(context.answers)).routes(route for at in mounts for route in _routes(context, at))


def _routes(context: Context[CasSettings], at: str) -> list[web.RouteDef]:
    agents, files = AgentRoutes(context), FileRoutes(context)
    return [
        *routes_of_kind(f"{at}/agents", agents),
        web.get(f"{at}/agents/{{id}}/versions", agents.versions),
        web.get(f"{at}/models", agents.models),
        web.get(f"{at}/models/{{id}}", agents.model),
        *routes_of_kind(f"{at}/environments", EnvironmentRoutes(context)),
        web.post(f"{at}/files", files.create),
        web.get(f"{at}/files", files.listed),
        web.get(f"{at}/files/{{id}}", files.get),
        web.get(f"{at}/files/{{id}}/content", files.content),
        web.delete(f"{at}/files/{{id}}", files.delete),
        web.get(f"{at}/file-links/{{link}}", signed_link_handler(context.files)),
        *routes_of_kind(f"{at}/vaults", VaultRoutes(context)),
        *routes_of_kind(f"{at}/vaults/{{parent}}/credentials", CredentialRoutes(context)),
        web.post(f"{at}/vaults/{{parent}}/credentials/{{id}}/mcp_oauth_validate", CredentialRoutes(context).validate),
        *routes_of_kind(f"{at}/memory_stores", MemoryStoreRoutes(context)),
        *routes_of_kind(f"{at}/memory_stores/{{parent}}/memories", MemoryRoutes(context))[:-1],
        web.get(f"{at}/memory_stores/{{parent}}/memory_versions", MemoryRoutes(context).versions),
        web.get(f"{at}/memory_stores/{{parent}}/memory_versions/{{version}}", MemoryRoutes(context).version),
    ]


class AgentRoutes(ResourceRoutes):
    """Agents: those of the settings beside those that clients made, with all their versions."""

    kind, noun, prefix = "agent", "Agent", "agent"
    new, change = NewAgent, AgentChange

    def mine(self, request: web.Request) -> UserAgents:
        return UserAgents(self.context, request[OWNER])

    async def create(self, request: web.Request) -> web.Response:
        made = await self.mine(request).create(await read_json(request, NewAgent))
        return json_response(await self.body_of(request, made), 201)

    async def get(self, request: web.Request) -> web.Response:
        agent_id, version = request.match_info["id"], _version_param(request)
        with not_found_as(self.noun, agent_id if version is None else f"{agent_id}, version {version}"):
            return json_response(await self.body_of(request, await self.mine(request).find(agent_id, version)))

    async def update(self, request: web.Request) -> web.Response:
        change, agent_id = await read_json(request, AgentChange), request.match_info["id"]
        with not_found_as(self.noun, agent_id):
            return json_response(await self.body_of(request, await self.mine(request).update(agent_id, change)))

    async def versions(self, request: web.Request) -> web.Response:
        """Newest first."""
        found = await self.found(request)
        all_of_them = await self.mine(request).versions(found.resource_id)

        async def fetch(*, after: int | None, before: int | None, limit: int, oldest_first: bool) -> Sequence[Resource]:
            some = [one for one in all_of_them if (after or 0) < one.version < (before or len(all_of_them) + 1)]
            return (some if oldest_first else some[::-1])[:limit]

        async def find(cursor: str) -> Resource:
            raise NotFound(cursor)  # all versions have the same id, so that an id is no place among them

        page = await fetch_page(page_request(request.query), fetch, place_of=lambda one: one.version, find=find)
        return await page_reply(self.context.table, page, [await self.body_of(request, one) for one in page.items])

    async def models(self, request: web.Request) -> web.Response:
        """The configured agents, as models to choose from; there are never so many that they need pages."""
        told = [
            views.model_body(self.context.table, name, card) for name, card in models_of(self.context.agents).items()
        ]
        return await page_reply(self.context.table, ListPage(told, False, None), told)

    async def model(self, request: web.Request) -> web.Response:
        name, known = request.match_info["id"], models_of(self.context.agents)
        if name not in known:
            raise NotFound(f"Model '{name}' was not found.")
        return json_response(views.model_body(self.context.table, name, known[name]))

    async def archive(self, request: web.Request) -> web.Response:
        await self._changeable(request)
        return await super().archive(request)

    async def delete(self, request: web.Request) -> web.Response:
        await self._changeable(request)
        return await super().delete(request)

    async def body_of(self, request: web.Request, found: Resource) -> Any:
        card = self.context.agents.get(found.body.get("agent", ""))
        return views.agent_body(self.context.table, found, found.body, card)

    async def find(self, owner: str, resource_id: str) -> Resource:
        return await UserAgents(self.context, owner).find(resource_id)

    async def page(self, owner: str, **window: Any) -> Sequence[Resource]:
        return await UserAgents(self.context, owner).some(**{key: window[key] for key in window if key != "parent"})

    async def _changeable(self, request: web.Request) -> None:
        with not_found_as(self.noun, request.match_info["id"]):
            await self.mine(request).changeable(request.match_info["id"])


def _version_param(request: web.Request) -> int | None:
    """Zero is the newest version, and so is no version."""
    said = request.query.get("version") or "0"
    number = parse_whole_number(said)
    if number is None:
        raise Invalid(f"version: must be a whole number, not {quote_value(said)}", param="version")
    return number or None
