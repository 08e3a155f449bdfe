"""Runs over HTTP: chat, what can be done to a run by its id, and confirmations of what waits for a person."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from aiohttp import web

import gateway.model as m
from adapters.zenflux import asks as asks_module
from adapters.zenflux.asks import confirmation_body, option_ids, option_label, rollback_options
from adapters.zenflux.bodies import EndBody, PingFrame, PreviewBody, RefusalBody, StopBody, TickFrame, spell
from adapters.zenflux.server import views
from adapters.zenflux.server.chat_service import ChatService, StartedRun
from adapters.zenflux.server.socket import ChatSocket
from adapters.zenflux.server.stream_options import StreamOptions, sse_options
from adapters.zenflux.wire import (
    ChatAbort,
    ChatRequest,
    ChatSend,
    ConfirmationRequest,
    ContinueRequest,
    RollbackRequest,
    SessionResume,
    ZenfluxSettings,
)
from gateway.errors import NotFound, NotPending
from gateway.http import (
    OWNER,
    Answers,
    Context,
    Row,
    Shape,
    dumps,
    json_response,
    read_bytes,
    read_json,
    serve_websocket,
)
from gateway.ports import StreamSlot

GONE = 410
M = TypeVar("M", RollbackRequest, ContinueRequest)


def _request(method: str, params: Shape) -> Row:
    """A request over the socket."""
    return Row("request", id=str | int, method={method}, params=params)


class RunRoutes:
    """The routes of runs, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.chats = ChatService(context)

    @Answers(
        frames="json", stream_rows=("tick",), messages={
            "chat.send": _request("chat.send", ChatSend), "chat.abort": _request("chat.abort", ChatAbort),
            "session.resume": _request("session.resume", SessionResume), "ping": {"type": {"ping"}},
        }, replies={
            "chat.send": ("accepted", "refused"), "chat.abort": ("stopped", "refused"),
            "session.resume": ("resumed", "refused"), "ping": "pong",
        },
    )
    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        return await serve_websocket(
            request,
            partial(ChatSocket, self.chats, request[OWNER]),
            every=self.context.settings.tick_seconds,
            beat=lambda: dumps(spell(self.context.table, TickFrame(at=self.context.clock()))),
            patience=self.context.send_timeout,
        )

    @Answers(views.wrapped("run"), reads=ChatRequest, frames="sse", stream_rows=("ping",))
    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await read_json(request, ChatRequest)
        wish = await self.chats.check(request[OWNER], body)
        with self.context.sessions.reserve_stream(request[OWNER]) as place:
            run = await self.chats.begin(wish)
            options = sse_options(self.context.settings, run.before, run.named)
            if not body.stream:
                return await self._at_once(request, run, options, place)
            ping = b"data: " + dumps(spell(self.context.table, PingFrame())) + b"\n\n"
            return await self.context.stream_turn(
                request, run.view.session_id, run.receipt, options, place, to_the_end=True, hello=b"", ping=ping,
                heartbeat=self.context.settings.ping_seconds,
            )

    async def _at_once(
        self, request: web.Request, run: StartedRun, options: StreamOptions, place: StreamSlot
    ) -> web.Response:
        """Wait until the run has ended, an ask opens or the time is up, and reply with the run as it is then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.context.settings.sync_seconds):
                await self.context.await_turn(request, run.view.session_id, run.receipt, options, place)
        return views.reply(self.context, views.run_body(self.context.table, run.view, run.run_id))

    # -- by id ----------------------------------------------------------------------------------------------------

    @Answers(views.wrapped("stop"))
    async def stop(self, request: web.Request) -> web.Response:
        over = await self.chats.stop(request[OWNER], request.match_info["id"])
        return views.reply(self.context, spell(self.context.table, StopBody(**over._asdict())))

    @Answers(views.wrapped("end"))
    async def end(self, request: web.Request) -> web.Response:
        over = await self.chats.stop(request[OWNER], request.match_info["id"])
        return views.reply(self.context, spell(self.context.table, EndBody(**over._asdict())))

    @Answers(views.wrapped("session"))
    async def get(self, request: web.Request) -> web.Response:
        run_id = request.match_info["id"]
        view = await self.chats.find(request[OWNER], run_id)
        return views.reply(self.context, views.session_body(self.context.table, view, run_id))

    @Answers(views.wrapped({"total": int, "sessions": ["session"]}), query={"user_id": str})
    async def listed(self, request: web.Request) -> web.Response:
        found = [
            views.session_body(self.context.table, view, view.turn_id)
            for view in await self.context.sessions.active(request[OWNER])
            if view.turn_id is not None and self.chats.is_of(view, request.query.get("user_id"))
        ]
        return views.reply(self.context, {"total": len(found), "sessions": found})

    # -- long and failed runs -------------------------------------------------------------------------------------

    @Answers(
        views.wrapped({"session_id": str, "action": str}),
        reads=ContinueRequest, may_be_empty=True, query={"action": str},
    )
    async def confirm_continue(self, request: web.Request) -> web.Response:
        """Answer the ask whether to go on; if the run has no such ask open, the reply is a success all the same."""
        action = request.query.get("action") or (await _optional(request, ContinueRequest)).action
        ask = await self._pending(request, m.ContinuationAsk)
        run_id = request.match_info["id"]
        if ask is not None:
            view = await self.chats.find(request[OWNER], run_id)
            answer = asks_module.answer_of(ask, "reject" if action == "stop" else "approve", self.context.table)
            await self.context.sessions.submit(request[OWNER], view.session_id, [answer])
        return views.reply(self.context, {"session_id": run_id, "action": action})

    @Answers(views.wrapped("preview"))
    async def preview(self, request: web.Request) -> web.Response:
        """Show the states that a rollback can return to; only the agent knows which files a rollback changes."""
        ask = (await self._rollback_ask(request)).ask
        assert isinstance(ask, m.RollbackAsk), "that is what was looked for"
        options = rollback_options(ask, objects=self.context.settings.rollback_objects)
        return views.reply(self.context, spell(self.context.table, PreviewBody(
            run_id=request.match_info["id"], ask=ask, options=options, option_ids=option_ids(ask))))

    @Answers(views.wrapped({"session_id": str, "messages": [str]}), reads=RollbackRequest, may_be_empty=True)
    async def rollback(self, request: web.Request) -> web.Response:
        chosen = (await _optional(request, RollbackRequest)).option
        found, run_id = await self._rollback_ask(request), request.match_info["id"]
        ask, view = found.ask, await self.chats.find(request[OWNER], run_id)
        assert isinstance(ask, m.RollbackAsk), "that is what was looked for"
        option = asks_module.option_of(ask, chosen)
        answer = self.context.table.command("confirm.rollback", request_id=found.request_id, option=option)
        await self.context.sessions.submit(request[OWNER], view.session_id, [answer])
        labels = [option_label(one) for one, name in zip(ask.options, option_ids(ask), strict=True) if name == option]
        return views.reply(self.context, {"session_id": run_id, "messages": labels})

    async def _rollback_ask(self, request: web.Request) -> m.OpenAsk:
        ask = await self._pending(request, m.RollbackAsk)
        if ask is None:
            raise NotFound(f"session '{request.match_info['id']}' has nothing to roll back to")
        return ask

    async def _pending(self, request: web.Request, kind: type) -> m.OpenAsk | None:
        run_id = request.match_info["id"]
        view = await self.chats.find(request[OWNER], run_id)
        asks = (ask for ask in view.asks.values() if ask.turn_id == run_id and isinstance(ask.ask, kind))
        return next(asks, None)


async def _optional(request: web.Request, model: type[M]) -> M:
    """The body of a request; the model's defaults if the request has no body."""
    return await read_json(request, model) if (await read_bytes(request)).strip() else model()


class ConfirmationRoutes:
    """The routes of confirmations, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.chats = ChatService(context)

    @Answers(views.wrapped(["confirmation"]), query={"session_id": str, "user_id": str})
    async def pending(self, request: web.Request) -> web.Response:
        run_id, user_id = request.query.get("session_id"), request.query.get("user_id")
        shown = [
            confirmation_body(self.context.table, ask, view.session_id)
            for view in await self.context.sessions.active(request[OWNER]) if self.chats.is_of(view, user_id)
            for ask in view.asks.values() if run_id in (None, "", ask.turn_id)
        ]
        return views.reply(self.context, shown)

    @Answers(views.wrapped("confirmation"), others={GONE: "refusal"})
    async def get(self, request: web.Request) -> web.Response:
        view, asks = await self._find_asks(request)
        if not asks:
            return self._gone()
        return views.reply(self.context, confirmation_body(self.context.table, asks[0], view.session_id))

    @Answers(
        views.wrapped({"request_id": str, "response": object}), reads=ConfirmationRequest, others={GONE: "refusal"},
    )
    async def respond(self, request: web.Request) -> web.Response:
        """Answer an ask; the id of a run stands for its oldest ask, so that several asks are answered one by one."""
        body = await read_json(request, ConfirmationRequest)
        view, asks = await self._find_asks(request)
        if not asks:
            return self._gone()
        await self._settle(request, view, asks[0], body.response)
        return views.reply(self.context, {"request_id": asks[0].request_id, "response": body.response})

    @Answers(views.wrapped({"request_id": str}), others={GONE: "refusal"})
    async def cancel(self, request: web.Request) -> web.Response:
        view, asks = await self._find_asks(request)
        if not asks:
            return self._gone()
        await self._settle(request, view, asks[0], asks_module.CANCEL_WORDS[0])
        return views.reply(self.context, {"request_id": asks[0].request_id})

    async def _settle(self, request: web.Request, view: m.SessionView, ask: m.OpenAsk, response: object) -> None:
        answer = asks_module.answer_of(ask, response, self.context.table)
        try:
            await self.context.sessions.submit(request[OWNER], view.session_id, [answer])
        except NotPending:
            raise NotFound(f"nothing waits under '{ask.request_id}'") from None

    async def _find_asks(self, request: web.Request) -> tuple[m.SessionView, Sequence[m.OpenAsk]]:
        """The session and the open asks of the id in the path, oldest first; no asks if the last one has expired."""
        word = request.match_info["id"]
        try:
            view = await self.context.sessions.find_by_id(request[OWNER], word)
        except NotFound:
            raise NotFound(f"nothing waits under '{word}'") from None
        asks = [ask for ask in view.asks.values() if word in (ask.request_id, ask.turn_id)]
        if not asks and word not in view.expired and word not in view.expired.values():
            raise NotFound(f"nothing waits under '{word}'")
        return view, asks

    def _gone(self) -> web.Response:
        return json_response(spell(self.context.table, RefusalBody(code=GONE, message="the request has expired")), GONE)
