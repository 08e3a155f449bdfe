"""Human in the loop: what waits for a person, answered by the id of its run or its own."""

from collections.abc import Sequence

from aiohttp import web

from gateway.errors import NotFound, NotPending
from gateway.model import OpenAsk, SessionView
from gateway.web import OWNER, Context, read_as, reply

from . import inbound, views
from .asks import confirmation
from .chat import Chats
from .wire import Confirmation

GONE = 410


class Confirmations:
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context
        self.chats = Chats(context)

    async def pending(self, request: web.Request) -> web.Response:
        run_id, user_id = request.query.get("session_id"), request.query.get("user_id")
        shown = [
            confirmation(self.house.table, ask, view.session_id)
            for view in await self.house.sessions.active(request[OWNER]) if self.chats.is_of(view, user_id)
            for ask in view.asks.values() if run_id in (None, "", ask.turn_id)
        ]
        return self._reply(shown)

    async def get(self, request: web.Request) -> web.Response:
        view, asks = await self._asked(request)
        return self._reply(confirmation(self.house.table, asks[0], view.session_id)) if asks else self._gone()

    async def respond(self, request: web.Request) -> web.Response:
        """By the id of a run the oldest ask is answered; whoever has several open answers them one by one."""
        body = await read_as(request, Confirmation)
        view, asks = await self._asked(request)
        if not asks:
            return self._gone()
        await self._settle(request, view, asks[0], body.response)
        return self._reply({"request_id": asks[0].request_id, "response": body.response})

    async def cancel(self, request: web.Request) -> web.Response:
        view, asks = await self._asked(request)
        if not asks:
            return self._gone()
        await self._settle(request, view, asks[0], inbound.CANCEL[0])
        return self._reply({"request_id": asks[0].request_id})

    async def _settle(self, request: web.Request, view: SessionView, ask: OpenAsk, response: object) -> None:
        answer = inbound.answer_of(ask, response, self.house.table)
        try:
            await self.house.sessions.submit(request[OWNER], view.session_id, [answer])
        except NotPending:
            raise NotFound(f"nothing waits under '{ask.request_id}'") from None

    async def _asked(self, request: web.Request) -> tuple[SessionView, Sequence[OpenAsk]]:
        """The asks that an id stands for, oldest first; none if the last of them has expired."""
        word = request.match_info["id"]
        try:
            view = await self.house.sessions.find(request[OWNER], word)
        except NotFound:
            raise NotFound(f"nothing waits under '{word}'") from None
        asks = [ask for ask in view.asks.values() if word in (ask.request_id, ask.turn_id)]
        if not asks and word not in view.expired and word not in view.expired.values():
            raise NotFound(f"nothing waits under '{word}'")
        return view, asks

    def _gone(self) -> web.Response:
        return reply(self.house.table.object("refusal", code=GONE, message="the request has expired"), GONE)

    def _reply(self, data: object) -> web.Response:
        return reply(views.wrapped(self.house.table, data))
