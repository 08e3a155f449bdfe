"""The catalog's HTTP handlers: agents and models here, the other kinds on shelves of their own."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from gateway.errors import Invalid, NotFound
from gateway.field_errors import shown
from gateway.ports import Resource
from gateway.web import OWNER, Context, Idempotency, linked, read_as, reply

from . import catalog_views as views
from .catalog_agents import Agents, models
from .catalog_environments import Environments
from .catalog_files import FileShelf
from .catalog_memories import Memories, MemoryStores
from .catalog_shelf import Shelf, finding, shelf_routes
from .catalog_vaults import Credentials, Vaults
from .catalog_wire import AgentChange, NewAgent
from .paging import Listed, asked_of, listed, page_reply


def catalog_routes(context: Context, once: Idempotency | None = None) -> list[web.RouteDef]:
    """Every route of the catalog, under the mount and again under its `/v1`; none carries a keyed request out twice."""
    mounts = (context.mount, f"{context.mount}/v1")
    return (once or Idempotency(context.answers)).routes(route for at in mounts for route in _routes(context, at))


def _routes(context: Context, at: str) -> list[web.RouteDef]:
    agents, files = AgentShelf(context), FileShelf(context)
    return [
        *shelf_routes(f"{at}/agents", agents),
        web.get(f"{at}/agents/{{id}}/versions", agents.versions),
        web.get(f"{at}/models", agents.models),
        web.get(f"{at}/models/{{id}}", agents.model),
        *shelf_routes(f"{at}/environments", Environments(context)),
        web.post(f"{at}/files", files.create),
        web.get(f"{at}/files", files.listed),
        web.get(f"{at}/files/{{id}}", files.get),
        web.get(f"{at}/files/{{id}}/content", files.content),
        web.delete(f"{at}/files/{{id}}", files.delete),
        web.get(f"{at}/file-links/{{link}}", linked(context.files)),
        *shelf_routes(f"{at}/vaults", Vaults(context)),
        *shelf_routes(f"{at}/vaults/{{parent}}/credentials", Credentials(context)),
        web.post(f"{at}/vaults/{{parent}}/credentials/{{id}}/mcp_oauth_validate", Credentials(context).validate),
        *shelf_routes(f"{at}/memory_stores", MemoryStores(context)),
        *shelf_routes(f"{at}/memory_stores/{{parent}}/memories", Memories(context))[:-1],
        web.get(f"{at}/memory_stores/{{parent}}/memory_versions", Memories(context).versions),
        web.get(f"{at}/memory_stores/{{parent}}/memory_versions/{{version}}", Memories(context).version),
    ]


class AgentShelf(Shelf):
    """Agents: those of the settings beside those that clients made, with all their versions."""

    kind, noun, prefix = "agent", "Agent", "agent"
    new, change = NewAgent, AgentChange

    def mine(self, request: web.Request) -> Agents:
        return Agents(self.house, request[OWNER])

    async def create(self, request: web.Request) -> web.Response:
        made = await self.mine(request).create(await read_as(request, NewAgent))
        return reply(await self.shown(request, made), 201)

    async def get(self, request: web.Request) -> web.Response:
        agent_id, version = request.match_info["id"], _version(request)
        with finding(self.noun, agent_id if version is None else f"{agent_id}, version {version}"):
            return reply(await self.shown(request, await self.mine(request).find(agent_id, version)))

    async def update(self, request: web.Request) -> web.Response:
        change, agent_id = await read_as(request, AgentChange), request.match_info["id"]
        with finding(self.noun, agent_id):
            return reply(await self.shown(request, await self.mine(request).update(agent_id, change)))

    async def versions(self, request: web.Request) -> web.Response:
        """Newest first."""
        found = await self.found(request)
        all_of_them = await self.mine(request).versions(found.resource_id)

        async def fetch(*, after: int | None, before: int | None, limit: int, oldest_first: bool) -> Sequence[Resource]:
            some = [one for one in all_of_them if (after or 0) < one.version < (before or len(all_of_them) + 1)]
            return (some if oldest_first else some[::-1])[:limit]

        async def find(cursor: str) -> Resource:
            raise NotFound(cursor)  # all versions have the same id, so that an id is no place among them

        page = await listed(asked_of(request.query), fetch, place_of=lambda one: one.version, find=find)
        return await page_reply(self.house.table, page, [await self.shown(request, one) for one in page.items])

    async def models(self, request: web.Request) -> web.Response:
        """The configured agents, as models to choose from; there are never so many that they need pages."""
        told = [views.model(self.house.table, name, card) for name, card in models(self.house.agents).items()]
        return await page_reply(self.house.table, Listed(told, False, None), told)

    async def model(self, request: web.Request) -> web.Response:
        name, known = request.match_info["id"], models(self.house.agents)
        if name not in known:
            raise NotFound(f"Model '{name}' was not found.")
        return reply(views.model(self.house.table, name, known[name]))

    async def archive(self, request: web.Request) -> web.Response:
        await self._changeable(request)
        return await super().archive(request)

    async def delete(self, request: web.Request) -> web.Response:
        await self._changeable(request)
        return await super().delete(request)

    async def shown(self, request: web.Request, found: Resource) -> Any:
        card = self.house.agents.get(found.body.get("agent", ""))
        return views.agent(self.house.table, found, found.body, card)

    async def find(self, owner: str, resource_id: str) -> Resource:
        return await Agents(self.house, owner).find(resource_id)

    async def some(self, owner: str, **window: Any) -> Sequence[Resource]:
        return await Agents(self.house, owner).some(**{key: window[key] for key in window if key != "parent"})

    async def _changeable(self, request: web.Request) -> None:
        with finding(self.noun, request.match_info["id"]):
            await self.mine(request).changeable(request.match_info["id"])


def _version(request: web.Request) -> int | None:
    """Zero, or none said, is the newest."""
    said = request.query.get("version") or "0"
    if not (said.isascii() and said.isdigit() and len(said) < 10):
        raise Invalid(f"version: must be a whole number, not {shown(said)}", param="version")
    return int(said) or None
