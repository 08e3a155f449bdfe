"""Blade's links to a session: made, taken back, and followed by people nobody knows."""

from aiohttp import web

from gateway.resources import Sharing
from gateway.web import OWNER, Context, address, public, read_as, reply

from .rest_reading import messages_of
from .rest_wire import ShareFor


def share_routes(context: Context) -> list[web.RouteDef]:
    shares, at = ShareRoutes(context), f"{context.mount}/sessions/{{id}}/share"
    return [
        web.post(at, shares.create),
        web.delete(f"{at}/{{token}}", shares.revoke),
        web.get(f"{context.mount}/share/{{token}}", shares.read),
    ]


class ShareRoutes:
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context
        self.sharing = Sharing(context.resources, context.clock)

    async def create(self, request: web.Request) -> web.Response:
        said = await read_as(request, ShareFor) if request.can_read_body else ShareFor()
        view = await self.house.sessions.get(request[OWNER], request.match_info["id"])
        token, share = await self.sharing.share(view.owner, view.session_id, said.ttl_seconds)
        url = address(request, f"{self.house.mount}/share/{token}")
        return reply(self.house.table.object("share", token=token, url=url, expires_at=share.expires_at))

    async def revoke(self, request: web.Request) -> web.Response:
        view = await self.house.sessions.get(request[OWNER], request.match_info["id"])
        await self.sharing.revoke(view.owner, view.session_id, request.match_info["token"])
        return reply(self.house.table.object("share.revoked"))

    @public
    async def read(self, request: web.Request) -> web.Response:
        share = await self.sharing.open(request.match_info["token"])
        token = request.match_info["token"]
        return reply(await messages_of(self.house, share.owner, share.session_id, waits_with=token))
