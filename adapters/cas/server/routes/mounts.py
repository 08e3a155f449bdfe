"""CAS's HTTP handlers for the files and repositories that are mounted into a session."""

from aiohttp import web

from adapters.cas.server.handler_context import HandlerContext
from adapters.cas.server.mounts import MOUNT, checked_mount, mount_body
from adapters.cas.server.paging import listed_answers, page_reply
from adapters.cas.wire import AnyMount, MountChange
from gateway.errors import Conflict
from gateway.http import Answers, json_response, read_json


def mount_routes(handlers: HandlerContext) -> list[web.RouteDef]:
    """The routes of mounts."""
    cas, mounts = MountRoutes(handlers), "/sessions/{session}/resources"
    return [
        web.post(mounts, cas.create),
        web.get(mounts, cas.listed),
        web.get(f"{mounts}/{{resource}}", cas.get),
        web.post(f"{mounts}/{{resource}}", cas.renew),
        web.delete(f"{mounts}/{{resource}}", cas.delete),
    ]


class MountRoutes:
    """The routes of mounts, one method each."""

    def __init__(self, handlers: HandlerContext) -> None:
        self.handlers = handlers
        self.context = handlers.context

    @Answers(MOUNT, status=201, reads=AnyMount)
    async def create(self, request: web.Request) -> web.Response:
        view, given = await self.handlers.session(request), await read_json(request, AnyMount)
        if view.closed is not None:
            raise Conflict(f"Session '{view.session_id}' is {view.closed} and cannot be changed.")
        mount = await checked_mount(self.context, view.owner, given.model_dump())
        return json_response(mount_body(self.context.table, await self.handlers.mounts(view).add_alone(mount)), 201)

    @listed_answers(MOUNT)
    async def listed(self, request: web.Request) -> web.Response:
        view = await self.handlers.session(request)
        rows = await self.handlers.mounts(view).all()
        page = await self.handlers.page_of(
            request, rows, place_of=lambda row: row.ordinal, id_of=lambda row: row.resource_id,
        )
        return await page_reply(self.context.table, page, [mount_body(self.context.table, row) for row in page.items])

    @Answers(MOUNT)
    async def get(self, request: web.Request) -> web.Response:
        view = await self.handlers.session(request)
        found = await self.handlers.mounts(view).get(request.match_info["resource"])
        return json_response(mount_body(self.context.table, found))

    @Answers(MOUNT, reads=MountChange)
    async def renew(self, request: web.Request) -> web.Response:
        """Renew the token of a repository; nothing else of a mount can change."""
        view, change = await self.handlers.session(request), await read_json(request, MountChange)
        mounts, mount_id = self.handlers.mounts(view), request.match_info["resource"]
        return json_response(mount_body(self.context.table, await mounts.renew(mount_id, change.authorization_token)))

    @Answers("resource.deleted")
    async def delete(self, request: web.Request) -> web.Response:
        view, mount_id = await self.handlers.session(request), request.match_info["resource"]
        await self.handlers.mounts(view).remove(mount_id)
        return json_response(self.context.table.object("resource.deleted", id=mount_id))
