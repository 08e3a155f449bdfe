"""AAP's HTTP handlers for sessions and turns: each parses a request, calls the session service and answers."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web
from msgspec.structs import replace

import gateway.model as m
from adapters.aap.server import history, inbound, views
from adapters.aap.server.stream_options import StreamOptions
from adapters.aap.wire import AapSettings, NewSession, NewTurn, image_addresses
from gateway.errors import Conflict, Invalid, NotFound, Unauthenticated, Unsupported
from gateway.http import (
    OWNER,
    Answers,
    Context,
    bearer_token,
    decode_cursor,
    encode_cursor,
    json_response,
    public,
    read_json,
)
from gateway.ports import ChosenAgent

CURSOR_FORMAT = re.compile(r"(?:([0-9]{1,15})\.)?([0-9]{1,9})", re.ASCII)
TURN_BEGINNINGS = (m.TurnStarted, m.TurnResumed)
"""Each of them is the start of a turn of AAP's."""


async def cards_for(context: Context[AapSettings], request: web.Request) -> Sequence[m.AgentCard]:
    """The agents that this client may use; a client without a valid key sees those of the settings."""
    try:
        caller = await context.guard.authenticate(
            bearer_token(request), request.remote or "", request.headers)
    except Unauthenticated:
        return [*context.agents.values()]
    service = context.agent_service
    shown = list[m.AgentCard]()
    for agent in await service.page(caller.user):
        try:
            if agent.definition.is_active:
                shown.append(service.shown_card(agent))
        except Invalid:  # the model of the agent is not served any more
            continue
    return shown


async def choose_agent(context: Context[AapSettings], owner: str, name: str) -> tuple[ChosenAgent, m.AgentCard]:
    """The agent that a new session names, and its card, which has only the tools that are enabled."""
    service = context.agent_service
    try:
        chosen = await service.choose(owner, name)
    except NotFound:
        raise Invalid(f"agent.name: there is no agent '{name}'", param="agent.name") from None
    return chosen, service.shown_card(chosen.agent)


def with_choices(card: m.AgentCard, made: m.Settings, settings: m.Settings) -> m.Settings:
    """The settings of a new session: those of the agent, and over them those of the request."""
    for name in settings.tools or ():
        if card.tool(name) is None:
            known = ", ".join(f"'{tool.spec.name}'" for tool in card.tools) or "none"
            raise Invalid(f"agent '{card.name}' has no tool '{name}'; it has {known}")
    return replace(
        made, tools=settings.tools, options=made.options | settings.options,
        client_tools=(*made.client_tools, *settings.client_tools),
    )


class TurnCursor(NamedTuple):
    """The record that begins a turn, and how many of its events the client has; without a record, of the last turn."""

    begins: int | None
    had: int


def turn_cursor_of(request: web.Request) -> TurnCursor:
    """The cursor in the header or the query: `events` of the last turn, or `turn.events`."""
    given = {value for value in (request.headers.get("Last-Event-ID"), request.query.get("after")) if value}
    if len(given) > 1:
        raise Invalid("Last-Event-ID and after exclude each other: send one of them", param="after")
    found = CURSOR_FORMAT.fullmatch(given.pop()) if given else CURSOR_FORMAT.fullmatch("0")
    if found is None:
        raise Invalid("after: say how many events you have had, or the id of the last one", param="after")
    return TurnCursor(int(found[1]) if found[1] else None, int(found[2]))


class ResumePoint(NamedTuple):
    """After which record a turn is to be read, and how many of its events are to be left out."""

    after: int
    had: int
    is_over: bool
    """Whether the turn has no more events."""


async def resume_point(
    context: Context[AapSettings], request: web.Request, view: m.SessionView, options: StreamOptions
) -> ResumePoint:
    """The place at which the client resumes; an impossible place is refused."""
    begins, had = turn_cursor_of(request)
    if begins is None:
        begins = view.begun_at
    else:
        await _check_turn_begins(context, request, view, begins)
    if not begins:
        raise NotFound(f"session '{view.session_id}' has had no turn yet")
    sent, is_over = await _count_events(context, request, view, options, begins - 1, had) if had else (0, False)
    if had > sent:
        raise Invalid(f"after: the turn has had {sent} events so far, not {had}", param="after")
    place = context.sessions.resume_place(view.session_id, context.dialect, options, begins - 1, had)
    return ResumePoint(place.after, place.had, is_over)


async def _check_turn_begins(
    context: Context[AapSettings], request: web.Request, view: m.SessionView, begins: int
) -> None:
    first = await context.sessions.records(request[OWNER], view.session_id, max(0, begins - 1), 1)
    if begins < 1 or not first or not isinstance(first[0].event, TURN_BEGINNINGS):
        raise Invalid(f"after: no turn of this session begins at {begins}", param="after")


async def _count_events(
    context: Context[AapSettings], request: web.Request, view: m.SessionView, options: StreamOptions, after: int,
    had: int,
) -> tuple[int, bool]:
    """How many events the turn has, counted up to one more than the client has; and whether these are all."""
    place = context.sessions.resume_place(view.session_id, context.dialect, options, after, had)
    sent = had - place.had
    chunks = await context.sessions.read(request[OWNER], view.session_id, context.dialect, options, after=place.after)
    async for chunk in chunks:
        sent += len(chunk.frames)
        if sent > had or chunk.yields:
            return sent, sent == had
    return sent, False


RESUMABLE = {"delta": StreamOptions("delta", has_ids=True), "message": StreamOptions("message", has_ids=True)}
"""The streams that a client can resume, by the word in its request."""


class SessionRoutes:
    """The routes of sessions, one method each."""

    def __init__(self, context: Context[AapSettings]) -> None:
        self.context = context

    @public
    @Answers("meta")
    async def meta(self, request: web.Request) -> web.Response:
        return json_response(views.meta_body(self.context.table, await cards_for(self.context, request)))

    @Answers("created", status=201, reads=NewSession)
    async def create(self, request: web.Request) -> web.Response:
        body = await read_json(request, NewSession)
        chosen, card = await choose_agent(self.context, request[OWNER], body.agent.name)
        settings = with_choices(card, chosen.settings, inbound.settings_of(body, card))
        await self.context.check_message_addresses(image_addresses(body.messages))
        view = await self.context.sessions.create(
            request[OWNER], chosen.card.name, settings=settings,
            history=inbound.seed_of(body, card, self.context.table),
        )
        return json_response(self.context.table.object("created", session_id=view.session_id), 201)

    @Answers("sessions", query={"after": str})
    async def listed(self, request: web.Request) -> web.Response:
        before = decode_cursor(request.query.get("after"))
        page, more = await self.context.sessions.list(
            request[OWNER], before=before, limit=self.context.settings.page_size,
        )
        shown = [(view, self.context.shown_agent(view)) for view in page]
        return json_response(views.sessions_body(self.context.table, shown, encode_cursor(more)))

    @Answers("session")
    async def get(self, request: web.Request) -> web.Response:
        view = await self.context.sessions.get(request[OWNER], request.match_info["id"])
        return json_response(views.session_body(self.context.table, view, self.context.shown_agent(view)))

    @Answers(status=204)
    async def delete(self, request: web.Request) -> web.Response:
        await self.context.sessions.delete(request[OWNER], request.match_info["id"])
        return web.Response(status=204)

    @Answers("history", query={"type": str})
    async def history(self, request: web.Request) -> web.Response:
        view = await self.context.sessions.get(request[OWNER], request.match_info["id"])
        kind = request.query.get("type")
        if kind not in ("full", "compacted"):
            raise Invalid("type: say 'full' or 'compacted'", param="type")
        if kind not in self.context.shown_agent(view).capabilities.history:
            raise NotFound(f"agent '{view.agent}' keeps no {kind} history")
        return json_response(await history.history_body(self.context.table, kind, view))

    @Answers("turn", reads=NewTurn, frames="sse")
    async def turn(self, request: web.Request) -> web.StreamResponse:
        session_id, context = request.match_info["id"], self.context
        view = await context.sessions.get(request[OWNER], session_id)
        body = await read_json(request, NewTurn)
        await context.check_message_addresses(image_addresses(body.messages))
        commands = inbound.commands_of(body, view, context.agent_of(view), context.table)
        with context.sessions.reserve_stream(request[OWNER]) as place:
            submitting = context.sessions.submit(request[OWNER], session_id, commands)
            receipt = await context.begin_turn(request[OWNER], session_id, submitting)
            if not receipt.begun:
                return self._still_waiting(body.stream)
            if body.stream == "none":
                answer = await context.await_turn(request, session_id, receipt, StreamOptions("none"), place)
                return web.Response(body=answer, content_type="application/json")
            return await context.stream_turn(request, session_id, receipt, StreamOptions(body.stream), place)

    @Answers(frames="sse", query={"stream": str, "after": str}, others={204: None})
    async def current(self, request: web.Request) -> web.StreamResponse:
        """The running turn, or the last one, after the events that the client has; not documented by AAP."""
        session_id, context = request.match_info["id"], self.context
        context.check_open()
        view = await context.sessions.get(request[OWNER], session_id)
        options = self._resumable(request, view)
        place = await resume_point(context, request, view, options)
        if place.is_over:
            return web.Response(status=204)
        return await context.stream_remaining(request, session_id, options, after=place.after, had=place.had)

    @Answers(status=204)
    async def interrupt(self, request: web.Request) -> web.Response:
        """End the turn that runs, or waits for the client; not documented by AAP."""
        session_id, context = request.match_info["id"], self.context
        view = await context.sessions.get(request[OWNER], session_id)
        if view.status not in (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED):
            raise Conflict(f"no turn runs or waits in session '{session_id}'")
        await context.sessions.submit(request[OWNER], session_id, [context.table.command("turn.interrupt")])
        return web.Response(status=204)

    def _resumable(self, request: web.Request, view: m.SessionView) -> StreamOptions:
        mode, card = request.query.get("stream", "delta"), self.context.shown_agent(view)
        if mode not in RESUMABLE or mode not in card.capabilities.streaming:
            raise Unsupported(f"agent '{card.name}' does not stream as '{mode[:64]}'")
        return RESUMABLE[mode]

    def _still_waiting(self, stream: str) -> web.Response:
        """The answers were taken, but others are still pending."""
        table = self.context.table
        if stream == "none":
            return json_response(table.object("turn", stop_reason=m.StopReason.NEEDS_INPUT, messages=[]))
        frames = table.encoder("sse").cue("turn.waiting", None)
        return web.Response(body=b"".join([frame.body for frame in frames]), content_type="text/event-stream")
