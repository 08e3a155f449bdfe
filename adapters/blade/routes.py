"""Blade's HTTP handlers for chat: each parses, asks the house, answers."""

from collections.abc import Iterable
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from gateway.errors import Invalid
from gateway.field_errors import shown
from gateway.model import PRIVATE, SECRETS, SessionStatus, SessionView, Settings
from gateway.time_slices import one_at_a_time, sliced
from gateway.web import OWNER, Context, SocketServer, public, read_as, reply

from . import inbound, views, wire
from .chat import Chat, Unsaid, read
from .ending import ending
from .rest_reading import PAGE, keep, messages_of, pages_of
from .rest_routes import rest_routes

HARD = 3
"""A packet of so many times the largest message is not even read; a lesser one is refused in words."""
MOST = 10_000


def routes(context: Context) -> Iterable[web.RouteDef]:
    chat, at, settings = Chat(context), context.mount, context.settings
    blade = BladeRoutes(context, chat)
    sockets = SocketServer(
        chat, context.guard, patience=lambda: context.patience, ping_seconds=settings.ping_seconds,
        most_bytes=HARD * settings.message_bytes, reads=read,
    )
    session = f"{at}/sessions/{{id}}"
    return [
        *sockets.routes(settings.socket_path),
        web.get(f"{at}/health", blade.health),
        web.post(f"{at}/sessions", blade.create),
        web.get(f"{at}/sessions", blade.listed),
        web.get(session, blade.get),
        web.patch(session, blade.rename),
        web.delete(session, blade.delete),
        web.put(f"{session}/env", blade.env),
        web.patch(f"{session}/pin", blade.pin),
        web.patch(f"{session}/sharing", blade.share),
        web.patch(f"{session}/memory", blade.remember),
        web.get(f"{session}/messages", blade.messages),
        web.get(f"{session}/history", blade.history),
        web.post(f"{session}/compact", blade.compact),
        web.post(f"{session}/chat", blade.chat),
        *rest_routes(context),
    ]


class BladeRoutes:
    """One method per route."""

    def __init__(self, context: Context, chat: Chat) -> None:
        self.house = context
        self._chat = chat

    @public
    async def health(self, request: web.Request) -> web.Response:
        return reply(self.house.table.object("health"))

    # -- sessions -------------------------------------------------------------------------------------------------

    async def create(self, request: web.Request) -> web.Response:
        body = await read_as(request, wire.NewSession)
        agent = self._agent(body.solution_id)
        view = await self.house.sessions.create(
            request[OWNER], agent, settings=self._settings(body, agent), title=body.intent,
            metadata={PRIVATE: {self.house.dialect: _kept(body)}},
        )
        return reply(self.house.table.object("session.created", session_id=view.session_id))

    async def listed(self, request: web.Request) -> web.Response:
        limit, offset = _number(request, "limit", 20, 1), _number(request, "offset", 0, 0)
        found, _ = await self.house.sessions.list(request[OWNER], limit=MOST)
        wanted: list[SessionView] = []
        async for some in sliced(found, PAGE):
            wanted += [view for view in some if self._wanted(request, view)]
        items: list[Any] = []
        async for some in sliced(wanted[offset:offset + limit], PAGE):
            items += [self._shown(view) for view in some]
        return reply(self.house.table.object("sessions", items=items, total=len(wanted), limit=limit, offset=offset))

    async def get(self, request: web.Request) -> web.Response:
        return self._whole(await self._view(request))

    async def rename(self, request: web.Request) -> web.Response:
        body = await read_as(request, wire.Renamed)
        session_id = request.match_info["id"]
        return self._whole(await self.house.sessions.update(request[OWNER], session_id, title=body.intent))

    async def delete(self, request: web.Request) -> web.Response:
        await self.house.sessions.delete(request[OWNER], request.match_info["id"])
        return reply(self.house.table.object("session.deleted"))

    async def env(self, request: web.Request) -> web.Response:
        return self._whole(await self._keep(request, **{SECRETS: (await read_as(request, wire.EnvIn)).env}))

    async def pin(self, request: web.Request) -> web.Response:
        return self._whole(await self._keep(request, is_pinned=(await read_as(request, wire.Pinned)).pinned))

    async def share(self, request: web.Request) -> web.Response:
        body = await read_as(request, wire.Shared)
        await self._keep(request, shared=body.shared)
        return reply(self.house.table.object("session.shared", shared=body.shared))

    async def remember(self, request: web.Request) -> web.Response:
        body = await read_as(request, wire.Remembering)
        await self._keep(request, memory_enabled=body.memory_enabled)
        return reply(self.house.table.object("session.memory", memory_enabled=body.memory_enabled))

    # -- what was said, and saying something ----------------------------------------------------------------------

    async def messages(self, request: web.Request) -> web.Response:
        return reply(await messages_of(self.house, request[OWNER], request.match_info["id"]))

    async def history(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        async with one_at_a_time(request[OWNER]):
            pages = pages_of(self.house, request[OWNER], view.session_id)
            return reply(await views.history(self.house.table, pages, self._model(view)))

    async def compact(self, request: web.Request) -> web.Response:
        session_id, house = request.match_info["id"], self.house
        with house.sessions.place(request[OWNER]) as place:
            submitting = house.sessions.submit(request[OWNER], session_id, [house.table.command("chat.compact")])
            receipt = await house.begin_turn(request[OWNER], session_id, submitting)
            await ending(house, request[OWNER], session_id, receipt, place)
        return reply(house.table.object("ack", session_id=session_id))

    async def chat(self, request: web.Request) -> web.Response:
        session_id = (await self._view(request)).session_id
        body = await read_as(request, wire.ChatSend)
        if not inbound.is_said(body):
            raise Invalid(Unsaid.message)
        body = body.model_copy(update={"headless": True})
        with self.house.sessions.place(request[OWNER]) as place:
            submitting = self._chat.submit(request[OWNER], session_id, body)
            receipt = await self.house.begin_turn(request[OWNER], session_id, submitting)
            return reply(await ending(self.house, request[OWNER], session_id, receipt, place))

    # -- pieces ---------------------------------------------------------------------------------------------------

    async def _view(self, request: web.Request) -> SessionView:
        return await self.house.sessions.get(request[OWNER], request.match_info["id"])

    async def _keep(self, request: web.Request, **kept: Any) -> SessionView:
        return await keep(self.house, request[OWNER], request.match_info["id"], **kept)

    def _whole(self, view: SessionView) -> web.Response:
        return reply(views.full_session(self.house.table, view, self._model(view)))

    def _shown(self, view: SessionView) -> Any:
        return views.session(self.house.table, view, self._model(view))

    def _model(self, view: SessionView) -> str | None:
        card = self.house.agents.get(view.agent)
        return view.settings.model or (card.model if card else None)

    def _agent(self, solution_id: str | None) -> str:
        """A solution that is an agent's name chooses the agent; else the one of the settings, or the first."""
        named = self.house.settings.agent
        if solution_id in self.house.agents:
            return str(solution_id)
        return self.house.agent(named).name if named else next(iter(self.house.agents))

    def _settings(self, body: wire.NewSession, agent: str) -> Settings:
        tools = None
        if body.disable_tools:
            off = body.disable_tools
            tools = {tool.spec.name: tool.permission for tool in self.house.agent(agent).tools
                     if isinstance(off, list) and tool.spec.name not in off}
        return Settings(model=body.model, tools=tools)

    def _wanted(self, request: web.Request, view: SessionView) -> bool:
        if view.status is SessionStatus.CLOSED:
            return False
        prefix, words = request.query.get("template_id_prefix", ""), request.query.get("q", "")
        kept, solution = view.private(self.house.dialect), request.query.get("solution_id")
        if solution and kept.get("solution_id") != solution:
            return False
        return (kept.get("template_id") or "").startswith(prefix) and words.lower() in (view.title or "").lower()


def _kept(body: wire.NewSession) -> dict[str, Any]:
    """What the gateway has no use for and Blade's clients want to see again."""
    said: BaseModel = body
    kept = said.model_dump(exclude={"intent", "model", "disable_tools", "env"}, exclude_none=True)
    return kept | ({SECRETS: body.env} if body.env else {})


def _number(request: web.Request, name: str, otherwise: int, least: int) -> int:
    said = request.query.get(name, str(otherwise))
    if not said.isascii() or not said.isdecimal() or len(said) > 9 or int(said) < least:
        raise Invalid(f"{name}: must be a whole number, {least} or more, not {shown(said)}", param=name)
    return int(said)


