"""The scripted CAS server: resources and sessions of the reference server, and turns that play a situation."""

import asyncio
from typing import Any

from aiohttp import web

from conformance.clients.agent_actions import Drop, Refuse
from conformance.clients.cas.player import Player
from conformance.clients.cas.streams import Streams
from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.request_recorder import ENTRY, Handler, recorder, reply, retry_after
from conformance.clients.situation import SERVER_TOOL, TOOL
from conformance.clients.sse import hang_up
from conformance.faults.cas.agents import TOOLSET
from conformance.faults.cas.front import ERRORS, LARGEST_BODY
from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Body, Session, mint, now
from conformance.faults.content import as_blocks

ANSWERS = {"user.tool_confirmation": "tool_use_id", "user.custom_tool_result": "custom_tool_use_id"}
DROPPED = web.RequestKey("dropped", bool)


class CasScriptedServer:
    """Plays situations over CAS."""

    mount = "/api/v1/cloud"
    cancels_requests = True

    def __init__(self) -> None:
        self.reply_queue = ReplyQueue()
        self._server = CasServer()
        self._streams = Streams(self.reply_queue, self._server)
        self._player = Player(self.reply_queue, self._server, self._streams)
        self._furnish()
        self._server.sessions.agent_of = self._agent_of  # type: ignore[method-assign]
        self._server.sessions.environment_of = self._environment_of  # type: ignore[method-assign]
        self._server.variables.variables = lambda given, environment: {}  # type: ignore[method-assign]

    def app(self) -> web.Application:
        @web.middleware
        async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await self._server.front.answer(request, handler)
            if request.get(DROPPED):
                hang_up(request)
            return response

        record = recorder(self.reply_queue, self.mount, lambda status, words: _refusal(status))
        app = web.Application(middlewares=[record, answering], client_max_size=LARGEST_BODY)
        app.on_response_prepare.append(self._server.front.stamp)
        server = self._server
        own = [
            web.post("/sessions/{id}/events", self._post_events),
            web.get("/sessions/{id}/events", self._get_events),
            web.get("/sessions/{id}/events/stream", self._streams.get_stream),
            web.post("/sessions/{id}/cancel", self._post_cancel),
        ]
        taken = {(route.method, route.path) for route in own}
        others = (*server.agent_routes(), *server.session_routes(), *server.event_routes(), *server.resource_routes())
        for route in (*own, *(it for it in others if (it.method, it.path) not in taken)):
            for mount in (self.mount, f"{self.mount}/v1"):
                app.router.add_route(route.method, mount + route.path, route.handler)
        return app

    def _furnish(self) -> None:
        """An agent and an environment that a client can use without making its own."""
        tool = {"type": "custom", "name": TOOL["name"], "description": TOOL["description"]}
        asks = {"name": SERVER_TOOL, "permission_policy": {"type": "always_ask"}}
        toolset = {"type": TOOLSET, "enabled_tools": [SERVER_TOOL], "configs": [asks]}
        at = now()
        about: Body = {
            "id": mint("agent"), "type": "agent", "name": "examiner", "model": "reference", "system": "",
            "description": "", "tools": [toolset, tool | {"input_schema": TOOL["parameters"]}], "mcp_servers": [],
            "skills": [], "metadata": {}, "version": 1, "archived_at": None, "created_at": at, "updated_at": at,
        }  # fmt: skip
        self._server.state.agents[about["id"]] = [about]
        named = {"name": "examiner", "config": {"type": "cloud"}}
        self._server.resources.create("environments", "env", "environment", named)

    def _agent_of(self, body: Body) -> Body:
        """The agent that a session names; the server's own, if it names none that there is."""
        given = body.get("agent")
        name = given.get("id") if isinstance(given, dict) else given
        versions = self._server.state.agents
        return versions.get(str(name), next(iter(versions.values())))[-1]

    def _environment_of(self, body: Body) -> Body:
        named = str(body.get("environment_id") or body.get("environment"))
        known = self._server.state.things["environments"]
        return known.get(named, next(iter(known.values())))

    # -- events --------------------------------------------------------------------------------------------------------

    async def _post_events(self, request: web.Request) -> web.StreamResponse:
        """Take whatever the client has posted, as far as it can be understood."""
        session = self._server.sessions.find(request)
        body = request[ENTRY].body
        given = body.get("events", [body]) if isinstance(body, dict) else []
        events = [event for event in given if isinstance(event, dict)] if isinstance(given, list) else []
        actions: Any = ()
        if any(event.get("type") == "user.message" for event in events):
            match self.reply_queue.next_reply():
                case Refuse(status, seconds):
                    self.reply_queue.traffic.mark("refused")
                    return _refusal(status, seconds)
                case Drop():
                    self.reply_queue.traffic.note_cut()
                    request[DROPPED] = True
                case found:
                    actions = found
        taken = [self._take(session, event, actions) for event in events]
        await asyncio.sleep(self.reply_queue.option("acceptance") or 0)
        return reply({"data": taken} | self.reply_queue.members, 202)

    def _take(self, session: Session, event: Body, actions: Any) -> Body:
        journal, kind = self._server.journal, str(event.get("type"))
        extras = {name: value for name, value in event.items() if name not in ("type", "id")}
        if isinstance(extras.get("content"), str | list):
            extras["content"] = as_blocks(extras["content"])
        if kind == "user.message":
            session.turn_id = mint("turn")
            stored = journal.emit(session, kind, **extras)
            session.task = asyncio.create_task(self._player.play(session, actions))
            return stored
        stored = journal.emit(session, kind, **extras)
        if kind == "user.interrupt":
            self._stop(session)
        elif kind in ANSWERS:
            self._settle(session, str(event.get(ANSWERS[kind])), stored)
        return stored

    def _settle(self, session: Session, ref: str, stored: Body) -> None:
        if ref in session.pending:
            session.answers[ref] = stored
        if session.pending and set(session.answers) >= set(session.pending):
            session.answered.set()

    def _stop(self, session: Session) -> None:
        self.reply_queue.traffic.mark("stopped")
        if session.is_busy and session.task is not None:
            session.task.cancel()

    async def _post_cancel(self, request: web.Request) -> web.StreamResponse:
        session = self._server.sessions.find(request)
        self._stop(session)
        return reply({"id": session.view["id"], "type": "session", "status": "canceling"}, 202)

    async def _get_events(self, request: web.Request) -> web.StreamResponse:
        if self._server.turns.wants_stream(request):
            return await self._streams.get_stream(request)
        return await self._server.turns.get_events(request)


def _refusal(status: int, seconds: int | None = None) -> web.Response:
    kind = ERRORS.get(status, "rate_limit_error" if status == 429 else "api_error")
    error = {"type": kind, "message": f"Refused with {status}."}
    return reply({"type": "error", "request_id": mint("req"), "error": error}, status, retry_after(seconds))
