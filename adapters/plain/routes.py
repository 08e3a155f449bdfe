"""The HTTP side of a plain dialect: handlers do what the table's routes say, and show what bodies can name."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

import gateway.model as m
from gateway.errors import Invalid, NotFound
from gateway.http import (
    OWNER,
    Context,
    Idempotency,
    ResumedSubscription,
    decode_cursor,
    encode_cursor,
    json_response,
    parse_json,
    public,
    read_bytes,
    stream_sse,
)
from gateway.json_values import JsonValue
from gateway.ports import NO_OPTIONS, Receipt
from mappings.language import PlainTable, Route, RouteShape, UnreadableBody

from .declarations import declared_answers
from .inbound import JsonObject, check_command, command_of, image_addresses, message_of, seed_of, settings_of
from .socket import serve_session

Shown = dict[str, Any]


def session_names(view: m.SessionView, agents: Iterable[m.AgentCard]) -> Shown:
    """A session: `answers`, `text` and `stop_reason` are those of its last turn."""
    messages = [message_names(entry) for entry in view.entries if entry.scope_id == m.ROOT]
    answers = _last_answers(messages)
    return {
        "session_id": view.session_id, "agent": view.agent, "title": view.title, "status": view.status,
        "created_at": view.created_at, "updated_at": view.updated_at, "metadata": view.shown_metadata,
        "options": dict(view.settings.options), "client_tools": list(map(tool_names, view.settings.client_tools)),
        "permissions": permission_names(view.settings),
        "turn_id": view.turn_id, "messages": messages, "answers": answers,
        "text": "".join(answer["text"] for answer in answers if answer["role"] is m.Role.ASSISTANT),
        "stop_reason": _stop_reason(view), "agents": [agent_names(card) for card in agents],
    }


def message_names(entry: m.HistoryEntry) -> Shown:
    return {
        "role": entry.role, "content": entry.content, "text": m.text_of(entry.content), "at": entry.at,
        "message_id": entry.message_id, "turn_id": entry.turn_id, "call_id": entry.call_id,
        "is_error": entry.is_error, "model": entry.model,
    }


def agent_names(card: m.AgentCard) -> Shown:
    return {
        "name": card.name, "title": card.title, "description": card.description, "version": card.version,
        "model": card.model, "tools": [tool_names(tool.spec) for tool in card.tools],
    }


def permission_names(settings: m.Settings) -> list[Shown]:
    """The agent's tools that the session may use, and whether each needs to be permitted."""
    return [{"name": name, "permission": permission, "trust": permission is m.Permission.ALLOW}
            for name, permission in (settings.tools or {}).items() if permission is not m.Permission.DENY]


def tool_names(spec: m.ToolSpec) -> Shown:
    return {"name": spec.name, "title": spec.title, "description": spec.description,
            "parameters": spec.parameters or {"type": "object"}}


def _last_answers(messages: list[Shown]) -> list[Shown]:
    """The messages of the agent and its tools since the last message of a person."""
    asked = max((place for place, message in enumerate(messages) if message["role"] is m.Role.USER), default=-1)
    return messages[asked + 1:]


def _stop_reason(view: m.SessionView) -> m.StopReason | None:
    if view.status is m.SessionStatus.SUSPENDED:
        return m.StopReason.NEEDS_INPUT
    return view.ended.stop_reason if view.ended is not None else None


PAGE_SIZE = 50
CURSOR = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?", re.ASCII)
"""The number of a record, and how many of its events the client has had, if it has not had all."""


class PlainSettings(BaseModel):
    """What config.yaml may say under the dialect's name."""

    model_config = ConfigDict(extra="forbid")

    agent: str | None = None
    page_size: int = Field(PAGE_SIZE, ge=1, le=1000)


class StreamPlace(NamedTuple):
    """After which record a stream begins, and how many events of the next one are left out."""

    after: int
    had: int


def routes(table: PlainTable, context: Context[PlainSettings]) -> Iterable[web.RouteDef]:
    made = [_route_def(route, table, PlainRoute(route, table, context), context.mount) for route in table.routes]
    return Idempotency(context.answers).routes(made)


def _route_def(route: Route, table: PlainTable, handler: "PlainRoute", mount: str) -> web.RouteDef:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await handler.handle(request)

    handle = declared_answers(route, table)(handle)
    is_public = all(action.public for action in route.actions)
    return web.route(route.method, f"{mount}{route.path}", public(handle) if is_public else handle)


class PlainRoute:
    """One route of the table."""

    def __init__(self, route: Route, table: PlainTable, context: Context[PlainSettings]) -> None:
        self._route, self._context = route, context
        inputs = table.shape.inputs
        self._is_websocket = table.shape.transport == "websocket"
        self._messages = [name for action in route.actions for name in action.input]
        self._has_body = any(name in inputs and inputs[name].wire is not None for name in self._messages)
        self._session_verbs: Mapping[str, Callable[..., Any]] = {
            "create": self._create, "list": self._list, "get": self._get, "delete": self._delete}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = {}
        action, message = self._route.actions[0], ""
        if self._messages and not (self._is_websocket and action.stream):
            body = await _read_object(request) if self._has_body else {}
            message = message_of(body, self._messages, self._context.table)
            action = next(action for action in self._route.actions if message in action.input)
        if action.session is not None:
            answer: web.StreamResponse = await self._session_verbs[action.session](request, action, message, body)
            return answer
        session_id = request.match_info.get("session")
        if message and session_id is not None:
            return await self._submit(request, action, session_id, message, body)
        if action.stream is not None and session_id is not None:
            return await self._stream(request, action, session_id)
        return await self._show(request, action, session_id)

    # -- sessions -----------------------------------------------------------------------------------------------------

    async def _create(
        self, request: web.Request, action: RouteShape, message: str, body: dict[str, object],
    ) -> web.StreamResponse:
        context, fields = self._context, dict[str, Any]()
        if action.body is not None:
            given = body or await _read_object(request, may_be_empty=True)
            fields = _readable(context.table.read_object, action.body, given)
        agent = fields.get("agent") or context.settings.agent or next(iter(context.agents))
        if agent not in context.agents:
            raise Invalid(f"there is no agent '{agent}'; there are {', '.join(context.agents)}", param="agent")
        view = await context.sessions.create(
            request[OWNER], agent, title=fields.get("title"), metadata=fields.get("metadata") or None,
            settings=settings_of(fields), history=seed_of(fields))
        if not message:
            return self._answer(action, view, 201)
        async with context.undo_if_refused(lambda: context.sessions.delete(request[OWNER], view.session_id)):
            return await self._submit(request, action, view.session_id, message, body)

    async def _list(self, request: web.Request, action: RouteShape, *_: Any) -> web.Response:
        context = self._context
        fields = _readable(context.table.read_query, action.query, request.query) if action.query is not None else {}
        limit = context.settings.page_size if fields.get("limit") is None else fields["limit"]
        if not 1 <= limit <= context.settings.page_size:
            raise Invalid(f"a page has 1 to {context.settings.page_size} sessions, not {limit}", param="limit")
        page, more = await context.sessions.list(
            request[OWNER], before=decode_cursor(fields.get("after")), limit=limit)
        sessions = [session_names(view, context.agents.values()) for view in page]
        shown = context.table.object(str(action.object), sessions=sessions, next=encode_cursor(more))
        return json_response(shown, action.status or 200)

    async def _get(self, request: web.Request, action: RouteShape, *_: JsonValue) -> web.Response:
        view = await self._context.sessions.get(request[OWNER], request.match_info["session"])
        return self._answer(action, view, 200)

    async def _delete(self, request: web.Request, action: RouteShape, *_: JsonValue) -> web.Response:
        view = await self._context.sessions.get(request[OWNER], request.match_info["session"])
        await self._context.sessions.delete(request[OWNER], view.session_id)
        return self._answer(action, view, 200)

    async def _show(self, request: web.Request, action: RouteShape, session_id: str | None) -> web.Response:
        if session_id is not None:
            return self._answer(action, await self._context.sessions.get(request[OWNER], session_id), 200)
        agents = [agent_names(card) for card in self._context.agents.values()]
        return json_response(self._context.table.object(str(action.object), agents=agents), action.status or 200)

    def _answer(self, action: RouteShape, view: m.SessionView, status: int) -> web.Response:
        """The session as the row of the route shows it; no content if the route has no row."""
        if action.object is None:
            return web.Response(status=action.status or 204)
        names = session_names(view, self._context.agents.values())
        return json_response(self._context.table.object(action.object, **names), action.status or status)

    # -- turns --------------------------------------------------------------------------------------------------------

    async def _submit(
        self, request: web.Request, action: RouteShape, session_id: str, message: str, body: dict[str, Any],
    ) -> web.StreamResponse:
        """Give the message to the session, and answer with the stream of the turn, with its result, or with nothing."""
        context, owner = self._context, request[OWNER]
        view = await context.sessions.get(owner, session_id)
        command = command_of(message, body, view, context.table)
        check_command(command, view, context.agent_of(view))
        await context.check_message_addresses(image_addresses(command))
        if action.stream is None and action.object is None:
            await context.sessions.submit(owner, session_id, [command])
            return web.Response(status=action.status or 204)
        with context.sessions.reserve_stream(owner) as place:
            submitting = context.sessions.submit(owner, session_id, [command])
            receipt = await context.begin_turn(owner, session_id, submitting)
            if not receipt.begun:
                return self._answer(action, await context.sessions.get(owner, session_id), 200)
            if action.stream is not None:
                return await context.stream_turn(request, session_id, receipt, NO_OPTIONS, place)
            await self._wait(owner, session_id, receipt, place)
        return self._answer(action, await context.sessions.get(owner, session_id), 200)

    async def _wait(self, owner: str, session_id: str, receipt: Receipt, place: Any) -> None:
        """Wait until the turn yields."""
        async with self._context.follow_turn(owner, session_id, receipt, NO_OPTIONS, place) as subscription:
            while chunks := await subscription.chunks():
                if any(chunk.yields for chunk in chunks):
                    return
            raise self._context.lost_turn_error(session_id, subscription)

    # -- streams ------------------------------------------------------------------------------------------------------

    async def _stream(self, request: web.Request, action: RouteShape, session_id: str) -> web.StreamResponse:
        """The events of the session after those that the client has had; of a turn only until it yields."""
        context = self._context
        context.check_open()
        view = await context.sessions.get(request[OWNER], session_id)
        cursor = self._cursor(request, action, view)
        if self._is_websocket:
            return await serve_session(request, context, action, session_id, cursor.after)
        if action.stream == "turn" and _is_over(view, cursor):
            return web.Response(status=204)
        subscription = await context.sessions.subscribe(
            request[OWNER], session_id, context.dialect, NO_OPTIONS, after=cursor.after)
        try:
            return await stream_sse(
                request, ResumedSubscription(subscription, cursor.had), heartbeat=context.heartbeat,
                patience=context.send_timeout, until_yield=action.stream == "turn")
        finally:
            subscription.close()

    def _cursor(self, request: web.Request, action: RouteShape, view: m.SessionView) -> StreamPlace:
        """Where the client goes on: after the last event that it names, or from the start of the turn or session."""
        read = self._context.table.read_query
        fields = _readable(read, action.query, request.query) if action.query is not None else request.query
        named = (request.headers.get("Last-Event-ID"), fields.get("after"))
        given = {str(one) for one in named if one not in (None, "")}
        if len(given) > 1:
            raise Invalid("Last-Event-ID and the query name different events: send one of them", param="Last-Event-ID")
        if not given:
            if action.stream == "session":
                return StreamPlace(0, 0)
            if not view.begun_at:
                raise NotFound(f"session '{view.session_id}' has had no turn yet")
            return StreamPlace(view.begun_at - 1, 0)
        found = CURSOR.fullmatch(given.pop())
        if found is None or int(found[1]) > view.head:
            raise Invalid("Last-Event-ID: must be the id of an event of this session", param="Last-Event-ID")
        seq, had = int(found[1]), int(found[2] or 0)
        return StreamPlace(max(seq - 1, 0), had) if had else StreamPlace(seq, 0)


def _is_over(view: m.SessionView, cursor: StreamPlace) -> bool:
    """Whether no turn runs, and the client has had the end of the last one."""
    is_running = view.status is m.SessionStatus.RUNNING
    return not is_running and bool(view.stops) and cursor.after >= view.stops[-1] and not cursor.had


async def _read_object(request: web.Request, *, may_be_empty: bool = False) -> dict[str, Any]:
    body = await read_bytes(request)
    if may_be_empty and not body.strip():
        return {}
    return (await parse_json(body, JsonObject)).model_extra or {}


def _readable(read: Callable[[str, Any], dict[str, Any]], row: str, body: Any) -> dict[str, Any]:
    """What a client sends, read with a row; raises an error that names the field."""
    try:
        return read(row, body)
    except UnreadableBody as error:
        raise Invalid(f"{error.field}: {error.problem}", param=error.field) from None
