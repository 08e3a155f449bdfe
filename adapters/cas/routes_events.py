"""CAS's HTTP handlers for events, streams and threads: each parses, asks the house, answers."""

from typing import Any

from aiohttp import web

from gateway.errors import Conflict, Invalid
from gateway.model import ROOT, SessionView
from gateway.web import OWNER, read_as, reply

from . import inbound, views
from .desk import Desk, spoken
from .filters import kept_events, words
from .paging import asked_of, listed, page_reply
from .reading import PREVIEWED, Previewed
from .wire import SentEvents

STREAM = "text/event-stream"


def event_routes(desk: Desk, at: str) -> list[web.RouteDef]:
    cas, one = EventRoutes(desk), f"{at}/sessions/{{session}}"
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


class EventRoutes:
    """One method per route."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.house = desk.house

    async def send(self, request: web.Request) -> web.Response:
        view, body = await self.desk.session(request), await read_as(request, SentEvents)
        if view.closed is not None:
            raise Conflict(f"Session '{view.session_id}' is {view.closed} and takes no more events.")
        commands = inbound.commands_of(body.events, view, self.desk.card(view), self.house.table)
        await self.desk.check_sources(view.owner, body.events, "events")
        with spoken(view.session_id):
            receipt = await self.house.sessions.submit(request[OWNER], view.session_id, commands)
        with self.house.taken():
            events = await self.desk.history(view, as_list=True).of_records(receipt.records)
        return reply(self.house.table.object("sent", events=events), 202)

    async def events(self, request: web.Request) -> web.StreamResponse:
        if STREAM in request.headers.get("Accept", ""):
            return await self.stream(request)
        view = await self.desk.session(request)
        history = self.desk.history(view, self.desk.scope(request, view), as_list=True)
        page = await listed(
            asked_of(request.query, ascending=True), history.fetch, place_of=lambda told: told.place,
            find=history.find, keep=kept_events(request.query),
        )
        return await page_reply(self.house.table, page, [told.event for told in page.items])

    async def stream(self, request: web.Request) -> web.StreamResponse:
        view = await self.desk.session(request)
        scope_id, start = self.desk.scope(request, view), self.desk.stream_start
        history = self.desk.history(view, scope_id, _deltas(request), as_list=False)
        after, reading = await history.resumed(cursor := _cursor(request))
        if cursor is None:
            after = await start.after(view, scope_id, request.query.get("stream_start"))
        return await self.house.stream_session(
            request, view.session_id, reading.word, after=after, comment=self.house.settings.heartbeat,
            told=start.told(view.session_id, scope_id),
        )

    # -- threads --------------------------------------------------------------------------------------------------

    async def threads(self, request: web.Request) -> web.Response:
        """The coordinator first; sub-agents in the order they were called."""
        view = await self.desk.session(request)
        shown = [await self._shown(view, scope_id) for scope_id in (ROOT, *view.scopes)]
        page = await self.desk.page_of(
            request, [*enumerate(shown, 1)], place_of=lambda row: row[0], id_of=lambda row: str(row[1]["id"]),
        )
        return await page_reply(self.house.table, page, [row[1] for row in page.items])

    async def thread(self, request: web.Request) -> web.Response:
        view = await self.desk.session(request)
        return reply(await self._shown(view, self.desk.scope(request, view) or ROOT))

    async def archive_thread(self, request: web.Request) -> web.Response:
        view = await self.desk.session(request)
        scope_id = self.desk.scope(request, view) or ROOT
        if scope_id == ROOT:
            raise Conflict("The coordinator thread cannot be archived; archive the session instead.")
        if view.closed is not None:
            raise Conflict(f"Session '{view.session_id}' is {view.closed} and cannot be changed.")
        try:
            await self.house.sessions.archive_scope(view.owner, view.session_id, scope_id)
        except Conflict:
            raise Conflict(f"Thread '{request.match_info['thread']}' is still running; archive it later.") from None
        return reply(await self._shown(view, scope_id))

    async def _shown(self, view: SessionView, scope_id: str) -> Any:
        return views.thread(self.house.table, view, await self.desk.agent(view), scope_id)


def _cursor(request: web.Request) -> str | None:
    """The last event a client has had; a header, where a browser sends it, or a word of the query."""
    given = [said for said in (request.headers.get("Last-Event-ID"), request.query.get("after_id")) if said]
    if len(set(given)) > 1:
        raise Invalid("Last-Event-ID and after_id exclude each other: send one of them", param="after_id")
    return given[0] if given else None


def _deltas(request: web.Request) -> tuple[Previewed, ...]:
    asked = words(request.query, "event_deltas")
    unknown = asked - set(PREVIEWED)
    if unknown:
        raise Invalid(f"event_deltas: say {' or '.join(PREVIEWED)}, not '{min(unknown)[:64]}'", param="event_deltas")
    return tuple(kind for kind in PREVIEWED if kind in asked)
