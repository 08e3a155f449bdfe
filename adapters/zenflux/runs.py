"""Runs over HTTP: chat as server-sent events or at once, and what can be done to a run by its id."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import TypeVar

from aiohttp import web

from gateway.errors import NotFound
from gateway.model import ContinuationAsk, OpenAsk, RollbackAsk
from gateway.ports import Place
from gateway.web import OWNER, Context, converse, dumps, read_as, read_bytes, reply

from . import inbound, views
from .asks import label_of, option_ids, rollback_options
from .chat import Begun, Chats
from .manner import as_events
from .socket import ChatSocket
from .wire import ChatRequest, Continue, Rollback, ZenfluxSettings

M = TypeVar("M", Rollback, Continue)


class Runs:
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context
        self.chats = Chats(context)

    @property
    def settings(self) -> ZenfluxSettings:
        settings: ZenfluxSettings = self.house.settings
        return settings

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        return await converse(
            request, partial(ChatSocket, self.chats, request[OWNER]), every=self.settings.tick_seconds,
            beat=lambda: dumps(self.house.table.object("tick", at=self.house.clock())), patience=self.house.patience,
        )

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await read_as(request, ChatRequest)
        wish = await self.chats.check(request[OWNER], body)
        with self.house.sessions.place(request[OWNER]) as place:
            run = await self.chats.begin(wish)
            manner = as_events(self.settings, run.before, run.named)
            if not body.stream:
                return await self._at_once(request, run, manner, place)
            ping = b"data: " + dumps(self.house.table.object("ping")) + b"\n\n"
            return await self.house.stream_turn(
                request, run.view.session_id, run.receipt, manner, place, to_the_end=True, hello=b"", ping=ping,
                heartbeat=self.settings.ping_seconds,
            )

    async def _at_once(self, request: web.Request, run: Begun, manner: str, place: Place) -> web.Response:
        """The result, or how far it has come when somebody is asked or patience ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.sync_seconds):
                await self.house.await_turn(request, run.view.session_id, run.receipt, manner, place)
        return self._reply(views.run_result(self.house.table, run.view, run.run_id))

    # -- by id ----------------------------------------------------------------------------------------------------

    async def stop(self, request: web.Request) -> web.Response:
        over = await self.chats.stop(request[OWNER], request.match_info["id"])
        return self._reply(self.house.table.object("stop", **over._asdict()))

    async def end(self, request: web.Request) -> web.Response:
        over = await self.chats.stop(request[OWNER], request.match_info["id"])
        return self._reply(self.house.table.object("end", **over._asdict()))

    async def get(self, request: web.Request) -> web.Response:
        run_id = request.match_info["id"]
        view = await self.chats.find(request[OWNER], run_id)
        return self._reply(views.session_info(self.house.table, view, run_id))

    async def listed(self, request: web.Request) -> web.Response:
        found = [
            views.session_info(self.house.table, view, view.turn_id)
            for view in await self.house.sessions.active(request[OWNER])
            if view.turn_id is not None and self.chats.is_of(view, request.query.get("user_id"))
        ]
        return self._reply({"total": len(found), "sessions": found})

    # -- long and failed runs -------------------------------------------------------------------------------------

    async def confirm_continue(self, request: web.Request) -> web.Response:
        """Where nobody asks, there is nothing to do, and nothing wrong."""
        action = request.query.get("action") or (await _optional(request, Continue)).action
        ask = await self._pending(request, ContinuationAsk)
        run_id = request.match_info["id"]
        if ask is not None:
            view = await self.chats.find(request[OWNER], run_id)
            answer = inbound.answer_of(ask, "reject" if action == "stop" else "approve", self.house.table)
            await self.house.sessions.submit(request[OWNER], view.session_id, [answer])
        return self._reply({"session_id": run_id, "action": action})

    async def preview(self, request: web.Request) -> web.Response:
        """What can be gone back to; which files that changes is the agent's to know, and is not told."""
        ask = (await self._rollback_ask(request)).ask
        assert isinstance(ask, RollbackAsk), "that is what was looked for"
        options = rollback_options(ask, objects=self.settings.rollback_objects)
        return self._reply(self.house.table.object(
            "preview", run_id=request.match_info["id"], ask=ask, options=options, option_ids=option_ids(ask)))

    async def rollback(self, request: web.Request) -> web.Response:
        chosen = (await _optional(request, Rollback)).option
        found, run_id = await self._rollback_ask(request), request.match_info["id"]
        ask, view = found.ask, await self.chats.find(request[OWNER], run_id)
        assert isinstance(ask, RollbackAsk), "that is what was looked for"
        option = inbound.option_of(ask, chosen)
        answer = self.house.table.command("confirm.rollback", request_id=found.request_id, option=option)
        await self.house.sessions.submit(request[OWNER], view.session_id, [answer])
        labels = [label_of(one) for one, name in zip(ask.options, option_ids(ask), strict=True) if name == option]
        return self._reply({"session_id": run_id, "messages": labels})

    async def _rollback_ask(self, request: web.Request) -> OpenAsk:
        ask = await self._pending(request, RollbackAsk)
        if ask is None:
            raise NotFound(f"session '{request.match_info['id']}' has nothing to roll back to")
        return ask

    async def _pending(self, request: web.Request, kind: type) -> OpenAsk | None:
        run_id = request.match_info["id"]
        view = await self.chats.find(request[OWNER], run_id)
        asks = (ask for ask in view.asks.values() if ask.turn_id == run_id and isinstance(ask.ask, kind))
        return next(asks, None)

    def _reply(self, data: object) -> web.Response:
        return reply(views.wrapped(self.house.table, data))


async def _optional(request: web.Request, model: type[M]) -> M:
    """A body that may be left out."""
    return await read_as(request, model) if (await read_bytes(request)).strip() else model()
