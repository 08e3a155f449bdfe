"""A plain dialect over a WebSocket: the frames of one session go out, messages for it come in."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web

from gateway.errors import GatewayError
from gateway.http import OWNER, Context, WebSocketWriter, dumps, parse_json, serve_websocket
from gateway.ports import NO_OPTIONS, Subscription
from mappings.language import RouteShape

from .inbound import JsonObject, check_command, command_of, image_addresses, message_of

if TYPE_CHECKING:
    from .routes import PlainSettings

SILENCE_SECONDS = 7 * 24 * 3600.0
"""How often a dialect without a word for it is sent a heartbeat."""


async def serve_session(
    request: web.Request, context: "Context[PlainSettings]", action: RouteShape, session_id: str, after: int,
) -> web.WebSocketResponse:
    """Serve one WebSocket until the client disconnects."""
    subscription = await context.sessions.subscribe(
        request[OWNER], session_id, context.dialect, NO_OPTIONS, after=after)
    beat = dumps(context.table.object(action.ping)) if action.ping is not None else b"{}"
    try:
        return await serve_websocket(
            request, lambda writer: SessionSocket(request[OWNER], context, action, session_id, subscription, writer),
            beat=lambda: beat, every=context.heartbeat if action.ping is not None else SILENCE_SECONDS,
            patience=context.send_timeout,
        )
    finally:
        subscription.close()


class SessionSocket:
    """One client of one session."""

    def __init__(
        self, owner: str, context: "Context[PlainSettings]", action: RouteShape, session_id: str,
        subscription: Subscription, writer: WebSocketWriter,
    ) -> None:
        self._owner, self._context, self._session_id = owner, context, session_id
        self._messages, self._writer = action.input, writer
        self._sending = asyncio.create_task(self._send(subscription))

    async def on_frame(self, frame: bytes) -> None:
        """A message becomes a command; an error is answered in the words of the dialect."""
        try:
            await self._context.count_request(self._owner, "message")
            await self._submit(frame)
        except GatewayError as error:
            _, body = self._context.table.error(
                error.code, message=error.message, param=error.param, details=error.details,
                request_id=error.request_id)
            await self._writer.send((dumps(body),))

    async def _submit(self, frame: bytes) -> None:
        context = self._context
        body = (await parse_json(frame, JsonObject)).model_extra or {}
        view = await context.sessions.get(self._owner, self._session_id)
        command = command_of(message_of(body, self._messages, context.table), body, view, context.table)
        check_command(command, view, context.agent_of(view))
        await context.check_message_addresses(image_addresses(command))
        await context.sessions.submit(self._owner, self._session_id, [command])

    async def wait_until_idle(self) -> None:
        """Nothing is half sent between two frames."""

    async def on_disconnect(self) -> None:
        self._sending.cancel()
        with suppress(asyncio.CancelledError, ConnectionError):
            await self._sending

    async def _send(self, subscription: Subscription) -> None:
        while chunks := await subscription.chunks():
            await self._writer.send([frame.body for chunk in chunks for frame in chunk.frames])
        await self._writer.close_unfinished(subscription)
