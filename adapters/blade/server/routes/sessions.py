"""Blade's HTTP handlers for chat: each parses a request, calls the session service and answers."""

from contextlib import suppress

from aiohttp import web
from msgspec.structs import replace
from pydantic import BaseModel

import gateway.model as m
from adapters.blade import wire
from adapters.blade.server import history as history_module
from adapters.blade.server import inbound, views
from adapters.blade.server.history import MESSAGE, RECORDS_PER_PAGE, message_bodies, record_pages, update_private
from adapters.blade.server.socket import MISSING_MESSAGE, ChatSocket, final_result
from adapters.blade.wire import BladeSettings
from gateway.errors import Invalid, NotFound
from gateway.field_errors import quote_value
from gateway.http import (
    OWNER,
    Answers,
    AnyFrame,
    Context,
    Row,
    json_response,
    parse_whole_number,
    pieces_response,
    public,
    read_json,
)
from gateway.json_values import JsonObject
from gateway.ports import SessionFilter
from gateway.time_slices import one_at_a_time, sliced

from .skills import skills_of_new_session

HARD_LIMIT_FACTOR = 3
"""A packet of so many times the largest message is not read at all; a smaller one is refused with a reason."""
MAX_SESSIONS_LISTED = 10_000
"""How many sessions one response lists at most."""


WHOLE_SESSION = Row("session.full", session="session")


class SessionRoutes:
    """The routes of sessions, one method each."""

    def __init__(self, context: Context[BladeSettings], chat: ChatSocket) -> None:
        self.context = context
        self._chat = chat

    @public
    @Answers("health")
    async def health(self, request: web.Request) -> web.Response:
        return json_response(self.context.table.object("health"))

    # -- sessions -------------------------------------------------------------------------------------------------

    @Answers("session.created", reads=wire.NewSession)
    async def create(self, request: web.Request) -> web.Response:
        body = await read_json(request, wire.NewSession)
        agent = self._agent(body.solution_id)
        skills = await skills_of_new_session(self.context, request[OWNER], agent, body.primary_skill_id)
        view = await self.context.sessions.create(
            request[OWNER], agent, settings=replace(self._settings(body, agent), skills=skills), title=body.intent,
            metadata={m.PRIVATE: {self.context.dialect: _private_fields(body)}},
        )
        return json_response(self.context.table.object("session.created", session_id=view.session_id))

    @Answers(
        Row("sessions", items=["session"]), query={
            "limit": int, "offset": int, "q": str, "template_id_prefix": str, "solution_id": str,
        },
    )
    async def listed(self, request: web.Request) -> web.Response:
        limit, offset = _number_param(request, "limit", 20, 1), _number_param(request, "offset", 0, 0)
        found, total = await self.context.sessions.find(
            request[OWNER], self._filter(request), offset=offset, limit=min(limit, MAX_SESSIONS_LISTED))
        items: list[object] = []
        async for some in sliced(found, RECORDS_PER_PAGE):
            for row in some:
                with suppress(NotFound):  # it was deleted since
                    items.append(self._shown(await self.context.sessions.get(request[OWNER], row.session_id)))
        return json_response(
            self.context.table.object("sessions", items=items, total=total, limit=limit, offset=offset)
        )

    @Answers(WHOLE_SESSION)
    async def get(self, request: web.Request) -> web.Response:
        return self._whole(await self._view(request))

    @Answers(WHOLE_SESSION, reads=wire.RenameSession)
    async def rename(self, request: web.Request) -> web.Response:
        body = await read_json(request, wire.RenameSession)
        session_id = request.match_info["id"]
        return self._whole(await self.context.sessions.update(request[OWNER], session_id, title=body.intent))

    @Answers("session.deleted")
    async def delete(self, request: web.Request) -> web.Response:
        await self.context.sessions.delete(request[OWNER], request.match_info["id"])
        return json_response(self.context.table.object("session.deleted"))

    @Answers(WHOLE_SESSION, reads=wire.EnvRequest)
    async def env(self, request: web.Request) -> web.Response:
        return self._whole(await self._keep(request, **{m.SECRETS: (await read_json(request, wire.EnvRequest)).env}))

    @Answers(WHOLE_SESSION, reads=wire.PinRequest)
    async def pin(self, request: web.Request) -> web.Response:
        return self._whole(await self._keep(request, is_pinned=(await read_json(request, wire.PinRequest)).pinned))

    @Answers("session.shared", reads=wire.SharingRequest)
    async def share(self, request: web.Request) -> web.Response:
        body = await read_json(request, wire.SharingRequest)
        await self._keep(request, shared=body.shared)
        return json_response(self.context.table.object("session.shared", shared=body.shared))

    @Answers("session.memory", reads=wire.MemoryUseRequest)
    async def remember(self, request: web.Request) -> web.Response:
        body = await read_json(request, wire.MemoryUseRequest)
        settings = replace((await self._view(request)).settings, memory=body.memory_enabled)
        await self.context.sessions.submit(
            request[OWNER], request.match_info["id"], [m.Configure(settings=settings)])
        return json_response(self.context.table.object("session.memory", memory_enabled=body.memory_enabled))

    # -- reading and sending messages -----------------------------------------------------------------------------

    @Answers([MESSAGE])
    async def messages(self, request: web.Request) -> web.Response:
        return json_response(await message_bodies(self.context, request[OWNER], request.match_info["id"]))

    @Answers(Row("history", nodes=[Row("history.node", turn=("turn", "turn.compaction"))]))
    async def history(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        async with one_at_a_time(request[OWNER]):
            pages = record_pages(self.context, request[OWNER], view.session_id)
            return json_response(await history_module.history_body(self.context.table, pages, self._model(view)))

    @Answers("ack")
    async def compact(self, request: web.Request) -> web.Response:
        session_id, context = request.match_info["id"], self.context
        with context.sessions.reserve_stream(request[OWNER]) as place:
            submitting = context.sessions.submit(request[OWNER], session_id, [context.table.command("chat.compact")])
            receipt = await context.begin_turn(request[OWNER], session_id, submitting)
            await final_result(context, request[OWNER], session_id, receipt, place)
        return json_response(context.table.object("ack", session_id=session_id))

    @Answers(AnyFrame("socketio", "chat:end"), reads=wire.ChatSend)
    async def chat(self, request: web.Request) -> web.Response:
        session_id = (await self._view(request)).session_id
        body = await read_json(request, wire.ChatSend)
        if not inbound.has_content(body):
            raise Invalid(MISSING_MESSAGE.message)
        body = body.model_copy(update={"headless": True})
        with self.context.sessions.reserve_stream(request[OWNER]) as place:
            submitting = self._chat.submit(request[OWNER], session_id, body)
            receipt = await self.context.begin_turn(request[OWNER], session_id, submitting)
            result = await final_result(self.context, request[OWNER], session_id, receipt, place)
            return pieces_response([result], "application/json")

    # -- pieces ---------------------------------------------------------------------------------------------------

    async def _view(self, request: web.Request) -> m.SessionView:
        return await self.context.sessions.get(request[OWNER], request.match_info["id"])

    async def _keep(self, request: web.Request, **kept: object) -> m.SessionView:
        return await update_private(self.context, request[OWNER], request.match_info["id"], **kept)

    def _whole(self, view: m.SessionView) -> web.Response:
        return json_response(views.full_session_body(self.context.table, view, self._model(view)))

    def _shown(self, view: m.SessionView) -> object:
        return views.session_body(self.context.table, view, self._model(view))

    def _model(self, view: m.SessionView) -> str | None:
        card = self.context.agents.get(view.agent)
        return view.settings.model or (card.model if card else None)

    def _agent(self, solution_id: str | None) -> str:
        """The agent that the solution names; otherwise the one of the settings, or the first."""
        named = self.context.settings.agent
        if solution_id in self.context.agents:
            return str(solution_id)
        return self.context.agent(named).name if named else next(iter(self.context.agents))

    def _settings(self, body: wire.NewSession, agent: str) -> m.Settings:
        tools = None
        if body.disable_tools:
            off = body.disable_tools
            tools = {tool.spec.name: tool.permission for tool in self.context.agent(agent).tools
                     if isinstance(off, list) and tool.spec.name not in off}
        return m.Settings(model=body.model, tools=tools, memory=body.memory_enabled is not False)

    def _filter(self, request: web.Request) -> SessionFilter:
        prefix, solution = request.query.get("template_id_prefix", ""), request.query.get("solution_id")
        labels, template = [m.OPEN_SESSION], m.field_label(self.context.dialect, "template_id", prefix)
        if solution:
            labels.append(m.field_label(self.context.dialect, "solution_id", solution))
        if prefix:
            labels.append(m.field_label(self.context.dialect, "template_id"))
        return SessionFilter(
            labels=tuple(labels), prefix=template if prefix else "", title=request.query.get("q", ""))


def _private_fields(body: wire.NewSession) -> JsonObject:
    """The fields that only Blade's clients use."""
    fields: BaseModel = body
    kept = fields.model_dump(exclude={"intent", "model", "disable_tools", "env", "memory_enabled"}, exclude_none=True)
    return kept | ({m.SECRETS: body.env} if body.env else {})


def _number_param(request: web.Request, name: str, otherwise: int, least: int) -> int:
    value = request.query.get(name, str(otherwise))
    number = parse_whole_number(value)
    if number is None or number < least:
        raise Invalid(f"{name}: must be a whole number, {least} or more, not {quote_value(value)}", param=name)
    return number


