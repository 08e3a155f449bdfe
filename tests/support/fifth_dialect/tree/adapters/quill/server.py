"""Quill as a server: its routes, and what they take."""

from collections.abc import Iterable, Sequence

from aiohttp import web
from pydantic import BaseModel, ValidationError

import gateway.model as m
from gateway.errors import Conflict
from gateway.http import OWNER, Answers, Context, FailFast, json_response, read_json
from gateway.ports import NO_OPTIONS, DialectTable, ParsedFrame

OBJECTS = {"created": ("session_id",), "talks": ("talks",), "talk": ("session_id", "lines"), "line": ("who", "text")}


class NewLine(FailFast, BaseModel):
    """What somebody writes."""

    text: str


def recorded_commands(frame: ParsedFrame, view: m.SessionView, table: DialectTable) -> Sequence[m.AnyCommand]:
    """What a person wrote in one request; nothing for any other request."""
    if not (frame.name.startswith("POST ") and frame.name.endswith("/lines")):
        return ()
    try:
        return [table.command("line.written", content=NewLine.model_validate(frame.body).text)]
    except ValidationError:
        return ()


class TalkRoutes:
    """One method per route."""

    def __init__(self, context: Context[BaseModel]) -> None:
        self.context = context

    @Answers("created", status=201)
    async def create(self, request: web.Request) -> web.Response:
        agent = next(iter(self.context.agents))
        view = await self.context.sessions.create(request[OWNER], agent)
        return json_response(self.context.table.object("created", session_id=view.session_id), 201)

    @Answers("talks")
    async def listed(self, request: web.Request) -> web.Response:
        page, _ = await self.context.sessions.list(request[OWNER], before=None, limit=100)
        talks = [self._talk(view) for view in page]
        return json_response(self.context.table.object("talks", talks=talks))

    @Answers("talk")
    async def get(self, request: web.Request) -> web.Response:
        return json_response(self._talk(await self.context.sessions.get(request[OWNER], request.match_info["session"])))

    @Answers(status=204)
    async def delete(self, request: web.Request) -> web.Response:
        await self.context.sessions.delete(request[OWNER], request.match_info["session"])
        return web.Response(status=204)

    @Answers(reads=NewLine, frames="sse")
    async def write(self, request: web.Request) -> web.StreamResponse:
        """The answer streams the turn."""
        context, session_id = self.context, request.match_info["session"]
        body = await read_json(request, NewLine)
        context.agent_of(await context.sessions.get(request[OWNER], session_id))
        command = context.table.command("line.written", content=body.text)
        with context.sessions.reserve_stream(request[OWNER]) as place:
            submitting = context.sessions.submit(request[OWNER], session_id, [command])
            receipt = await context.begin_turn(request[OWNER], session_id, submitting)
            return await context.stream_turn(request, session_id, receipt, NO_OPTIONS, place)

    @Answers(status=204)
    async def stop(self, request: web.Request) -> web.Response:
        context, session_id = self.context, request.match_info["session"]
        view = await context.sessions.get(request[OWNER], session_id)
        if view.status not in (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED):
            raise Conflict(f"nothing is being written in talk '{session_id}'")
        await context.sessions.submit(request[OWNER], session_id, [context.table.command("lines.stopped")])
        return web.Response(status=204)

    def _talk(self, view: m.SessionView) -> object:
        table = self.context.table
        lines = [table.object("line", who=str(entry.role), text=m.text_of(entry.content)) for entry in view.entries
                 if entry.scope_id == m.ROOT and entry.role in (m.Role.USER, m.Role.ASSISTANT)]
        return table.object("talk", session_id=view.session_id, lines=lines)


def routes(context: Context[BaseModel]) -> Iterable[web.RouteDef]:
    talks, at = TalkRoutes(context), f"{context.mount}/talks"
    return [
        web.post(at, talks.create),
        web.get(at, talks.listed),
        web.get(f"{at}/{{session}}", talks.get),
        web.delete(f"{at}/{{session}}", talks.delete),
        web.post(f"{at}/{{session}}/lines", talks.write),
        web.delete(f"{at}/{{session}}/lines", talks.stop),
    ]
