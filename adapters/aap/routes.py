"""AAP's HTTP handlers: each parses, asks the house, answers."""

from collections.abc import Iterable

from aiohttp import web

from gateway.errors import Conflict, Invalid, NotFound, Unsupported
from gateway.model import SessionStatus, SessionView, StopReason
from gateway.web import OWNER, Context, cursor_of, ordinal_of, public, read_as, reply

from . import history, inbound, views
from .outbound import IDS
from .resuming import place_of
from .wire import NewSession, NewTurn, addresses_in


def routes(context: Context) -> Iterable[web.RouteDef]:
    aap, at = AapRoutes(context), context.mount
    return [
        web.get(f"{at}/meta", aap.meta),
        web.post(f"{at}/sessions", aap.create),
        web.get(f"{at}/sessions", aap.listed),
        web.get(f"{at}/sessions/{{id}}", aap.get),
        web.delete(f"{at}/sessions/{{id}}", aap.delete),
        web.get(f"{at}/sessions/{{id}}/history", aap.history),
        web.post(f"{at}/sessions/{{id}}/turns", aap.turn),
        web.get(f"{at}/sessions/{{id}}/turns/current", aap.current),
        web.delete(f"{at}/sessions/{{id}}/turns/current", aap.interrupt),
    ]


class AapRoutes:
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context

    @public
    async def meta(self, request: web.Request) -> web.Response:
        return reply(views.meta(self.house.table, self.house.agents.values()))

    async def create(self, request: web.Request) -> web.Response:
        body = await read_as(request, NewSession)
        card = self.house.agents.get(body.agent.name)
        if card is None:
            raise Invalid(f"agent.name: there is no agent '{body.agent.name}'", param="agent.name")
        await self.house.check_message_addresses(addresses_in(body.messages))
        view = await self.house.sessions.create(
            request[OWNER], card.name, settings=inbound.settings_of(body, card), history=inbound.seed_of(body, card),
        )
        return reply(self.house.table.object("created", session_id=view.session_id), 201)

    async def listed(self, request: web.Request) -> web.Response:
        before = ordinal_of(request.query.get("after"))
        page, more = await self.house.sessions.list(
            request[OWNER], before=before, limit=self.house.settings.page_size,
        )
        told = [views.session(self.house.table, view, self.house.shown_agent(view)) for view in page]
        return reply(self.house.table.object("sessions", sessions=told, next=cursor_of(more)))

    async def get(self, request: web.Request) -> web.Response:
        view = await self.house.sessions.get(request[OWNER], request.match_info["id"])
        return reply(views.session(self.house.table, view, self.house.shown_agent(view)))

    async def delete(self, request: web.Request) -> web.Response:
        await self.house.sessions.delete(request[OWNER], request.match_info["id"])
        return web.Response(status=204)

    async def history(self, request: web.Request) -> web.Response:
        view = await self.house.sessions.get(request[OWNER], request.match_info["id"])
        kind = request.query.get("type")
        if kind not in ("full", "compacted"):
            raise Invalid("type: say 'full' or 'compacted'", param="type")
        if kind not in self.house.shown_agent(view).capabilities.history:
            raise NotFound(f"agent '{view.agent}' keeps no {kind} history")
        return reply(await history.history(self.house.table, kind, view))

    async def turn(self, request: web.Request) -> web.StreamResponse:
        session_id, house = request.match_info["id"], self.house
        view = await house.sessions.get(request[OWNER], session_id)
        body = await read_as(request, NewTurn)
        await house.check_message_addresses(addresses_in(body.messages))
        commands = inbound.commands_of(body, view, house.agent_of(view), house.table)
        with house.sessions.place(request[OWNER]) as place:
            submitting = house.sessions.submit(request[OWNER], session_id, commands)
            receipt = await house.begin_turn(request[OWNER], session_id, submitting)
            if not receipt.begun:
                return self._still_waiting(body.stream)
            if body.stream == "none":
                answer = await house.await_turn(request, session_id, receipt, "none", place)
                return web.Response(body=answer, content_type="application/json")
            return await house.stream_turn(request, session_id, receipt, body.stream, place)

    async def current(self, request: web.Request) -> web.StreamResponse:
        """The turn that runs, or the last one, from where the client left off; beside what AAP documents."""
        session_id, house = request.match_info["id"], self.house
        house.check_open()
        view = await house.sessions.get(request[OWNER], session_id)
        options = f"{self._mode(request, view)} {IDS}"
        place = await place_of(house, request, view, options)
        if place.is_over:
            return web.Response(status=204)
        return await house.stream_rest(request, session_id, options, after=place.after, had=place.had)

    async def interrupt(self, request: web.Request) -> web.Response:
        """End the turn that runs, or waits for the client; beside what AAP documents."""
        session_id, house = request.match_info["id"], self.house
        view = await house.sessions.get(request[OWNER], session_id)
        if view.status not in (SessionStatus.RUNNING, SessionStatus.SUSPENDED):
            raise Conflict(f"no turn runs or waits in session '{session_id}'")
        await house.sessions.submit(request[OWNER], session_id, [house.table.command("turn.interrupt")])
        return web.Response(status=204)

    def _mode(self, request: web.Request, view: SessionView) -> str:
        mode, card = request.query.get("stream", "delta"), self.house.shown_agent(view)
        if mode not in ("delta", "message") or mode not in card.capabilities.streaming:
            raise Unsupported(f"agent '{card.name}' does not stream as '{mode[:64]}'")
        return mode

    def _still_waiting(self, stream: str) -> web.Response:
        """The answers were taken, but others are still pending."""
        table = self.house.table
        if stream == "none":
            return reply(table.object("turn", stop_reason=StopReason.NEEDS_INPUT, messages=[]))
        frames = table.speaker("sse").cue("turn.waiting", None)
        return web.Response(body=b"".join(frames), content_type="text/event-stream")
