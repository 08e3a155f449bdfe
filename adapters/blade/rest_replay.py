"""Blade's replays: a session happens again in a new one, at speed 1, 2 or 5."""

from typing import Any

from aiohttp import web

from gateway.model import PRIVATE
from gateway.ports import Replays, ReplayState
from gateway.web import OWNER, Context, read_as, reply

from .rest_reading import keep
from .rest_wire import ReplayAt, ReplayChange


def replay_routes(context: Context) -> list[web.RouteDef]:
    assert context.replays is not None, "a gateway replays"
    replays, at = ReplayRoutes(context, context.replays), f"{context.mount}/sessions/{{id}}/replay"
    return [
        web.post(at, replays.start),
        web.get(f"{at}/preview", replays.preview),
        web.patch(at, replays.change),
    ]


class ReplayRoutes:
    """One method per route; how far a replay is, is kept with its session."""

    def __init__(self, context: Context, replays: Replays) -> None:
        self.house = context
        self.replays = replays

    async def start(self, request: web.Request) -> web.Response:
        said = await read_as(request, ReplayAt) if request.can_read_body else ReplayAt()
        owner = request[OWNER]
        old = await self.house.sessions.get(owner, request.match_info["id"])
        kept = {PRIVATE: {self.house.dialect: old.private(self.house.dialect)}}

        async def changed(session_id: str, state: ReplayState) -> None:
            await keep(self.house, owner, session_id, replay_state=self._shown(state))

        view = await self.replays.start(owner, old.session_id, said.speed, kept, changed)
        return reply(self.house.table.object("replay.started", session_id=view.session_id))

    async def preview(self, request: web.Request) -> web.Response:
        view = await self.house.sessions.get(request[OWNER], request.match_info["id"])
        reason = await self.replays.can(view.owner, view.session_id)
        return reply(self.house.table.object(
            "replay.preview", session_id=view.session_id, intent=view.title or "", supported=reason is None,
            reason=reason,
        ))

    async def change(self, request: web.Request) -> web.Response:
        said, session_id = await read_as(request, ReplayChange), request.match_info["id"]
        state = await self.replays.change(
            request[OWNER], session_id, speed=said.speed, stop=said.status == "autonomous",
        )
        return reply(self.house.table.object("replay", state=self._shown(state)))

    def _shown(self, state: ReplayState) -> Any:
        return self.house.table.object("replay.state", state=state)
