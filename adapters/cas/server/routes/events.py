"""CAS's HTTP handlers for events, streams and threads: each parses a request, calls the session service and answers."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

import gateway.model as m
from adapters.cas.server import inbound, views
from adapters.cas.server.handler_context import HandlerContext, session_errors
from adapters.cas.server.paging import (
    CREATED_QUERY,
    PAGE_QUERY,
    encoded_page_reply,
    event_filter,
    fetch_page,
    listed_answers,
    page_reply,
    page_request,
    query_words,
    words_query,
)
from adapters.cas.wire import PREVIEWED_TYPES, PreviewedType, SentEvents
from gateway.errors import Conflict, Invalid
from gateway.http import OWNER, Answers, AnyFrame, Row, Shape, json_response, read_json
from gateway.json_values import EncodedArray

SSE_TYPE = "text/event-stream"


def event_routes(desk: HandlerContext) -> list[web.RouteDef]:
    cas, one = EventRoutes(desk), "/sessions/{session}"
    thread = f"{one}/threads/{{thread}}"
    return [
        web.post(f"{one}/events", cas.send),
        web.get(f"{one}/events", cas.events),
        web.get(f"{one}/events/stream", cas.stream),
        web.get(f"{one}/threads", cas.threads),
        web.get(thread, cas.thread),
        web.post(f"{thread}/archive", cas.archive_thread),
        web.get(f"{thread}/events", cas.events),
        web.get(f"{thread}/stream", cas.stream),
        web.get(f"{thread}/events/stream", cas.stream),
    ]


STREAM_QUERY: Mapping[str, Shape] = {
    "after_id": str, "stream_start": str, **words_query("event_deltas"),
}


class EventRoutes:
    """The routes of events, streams and threads, one method each."""

    def __init__(self, handlers: HandlerContext) -> None:
        self.handlers = handlers
        self.context = handlers.context

    @Answers(Row("sent", events=[AnyFrame("sse")]), status=202, reads=SentEvents)
    async def send(self, request: web.Request) -> web.Response:
        view, body = await self.handlers.session(request), await read_json(request, SentEvents)
        if view.closed is not None:
            raise Conflict(f"Session '{view.session_id}' is {view.closed} and takes no more events.")
        commands = inbound.commands_of(body.events, view, self.handlers.card(view), self.context.table)
        await self.handlers.check_sources(view.owner, body.events, "events")
        with session_errors(view.session_id):
            receipt = await self.context.sessions.submit(request[OWNER], view.session_id, commands)
        with self.context.committed():
            events = await self.handlers.history(view, as_list=True).of_records(receipt.records)
        return json_response(self.context.table.object("sent", events=events), 202)

    @Answers(
        Row("page", items=[AnyFrame("sse")]), frames="sse",
        query={**PAGE_QUERY, **CREATED_QUERY, **STREAM_QUERY, **words_query("type", "types")},
    )
    async def events(self, request: web.Request) -> web.StreamResponse:
        if SSE_TYPE in request.headers.get("Accept", ""):
            return await self.stream(request)
        view = await self.handlers.session(request)
        history = self.handlers.history(view, self.handlers.scope(request, view), as_list=True)
        page = await fetch_page(
            page_request(request.query, ascending=True), history.fetch, place_of=lambda item: item.place,
            find=history.find, keep=event_filter(request.query),
        )
        first, last = (page.items[0].id, page.items[-1].id) if page.items else (None, None)
        bodies = EncodedArray([event.body for event in page.items])
        return encoded_page_reply(self.context.table, page, bodies, first, last)

    @Answers(frames="sse", query=STREAM_QUERY)
    async def stream(self, request: web.Request) -> web.StreamResponse:
        view = await self.handlers.session(request)
        scope_id, start = self.handlers.scope(request, view), self.handlers.stream_start
        history = self.handlers.history(view, scope_id, _deltas_param(request), as_list=False)
        after, options = await history.resumed(cursor := _cursor_param(request))
        if cursor is None:
            after = await start.after(view, scope_id, request.query.get("stream_start"))
        return await self.context.stream_session(
            request, view.session_id, options, after=after, comment=self.context.settings.heartbeat,
            on_write=start.on_write(view.session_id, scope_id),
        )

    # -- threads --------------------------------------------------------------------------------------------------

    @listed_answers("thread")
    async def threads(self, request: web.Request) -> web.Response:
        """List the threads: the agent's own first, then those of sub-agents in the order in which they were called."""
        view = await self.handlers.session(request)
        shown = [await self._shown(view, scope_id) for scope_id in (m.ROOT, *view.scopes)]
        page = await self.handlers.page_of(
            request, [*enumerate(shown, 1)], place_of=lambda row: row[0], id_of=lambda row: str(row[1]["id"]),
        )
        return await page_reply(self.context.table, page, [row[1] for row in page.items])

    @Answers("thread")
    async def thread(self, request: web.Request) -> web.Response:
        view = await self.handlers.session(request)
        return json_response(await self._shown(view, self.handlers.scope(request, view) or m.ROOT))

    @Answers("thread")
    async def archive_thread(self, request: web.Request) -> web.Response:
        view = await self.handlers.session(request)
        scope_id = self.handlers.scope(request, view) or m.ROOT
        if scope_id == m.ROOT:
            raise Conflict("The coordinator thread cannot be archived; archive the session instead.")
        if view.closed is not None:
            raise Conflict(f"Session '{view.session_id}' is {view.closed} and cannot be changed.")
        try:
            await self.context.sessions.archive_scope(view.owner, view.session_id, scope_id)
        except Conflict:
            raise Conflict(f"Thread '{request.match_info['thread']}' is still running; archive it later.") from None
        return json_response(await self._shown(view, scope_id))

    async def _shown(self, view: m.SessionView, scope_id: str) -> Any:
        return views.thread_body(self.context.table, view, await self.handlers.agent(view), scope_id)


def _cursor_param(request: web.Request) -> str | None:
    """The last event that a client has had, from the header that browsers send, or from the query."""
    given = [value for value in (request.headers.get("Last-Event-ID"), request.query.get("after_id")) if value]
    if len(set(given)) > 1:
        raise Invalid("Last-Event-ID and after_id exclude each other: send one of them", param="after_id")
    return given[0] if given else None


def _deltas_param(request: web.Request) -> tuple[PreviewedType, ...]:
    asked = query_words(request.query, "event_deltas")
    unknown = asked - set(PREVIEWED_TYPES)
    if unknown:
        raise Invalid(
            f"event_deltas: say {' or '.join(PREVIEWED_TYPES)}, not '{min(unknown)[:64]}'", param="event_deltas"
        )
    return tuple(kind for kind in PREVIEWED_TYPES if kind in asked)
