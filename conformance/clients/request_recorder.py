"""A middleware of the scripted servers: it records every request before a handler answers it."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from conformance.clients.client_traffic import Request
from conformance.clients.reply_queue import ReplyQueue

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ENTRY = web.RequestKey("entry", Request)


def recorder(
    reply_queue: ReplyQueue, mount: str, refusal: Callable[[int, str], web.Response], unread: str | None = None
) -> Any:
    """A middleware that keeps requests and their statuses; what has no route is refused in the dialect's way.

    The bodies of requests whose path begins with `unread` are left to others.
    """

    @web.middleware
    async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
        traffic = reply_queue.traffic
        is_read = unread is None or not request.path.startswith(unread)
        entry = request[ENTRY] = await traffic.note_request(request, mount, is_read=is_read)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = refusal(error.status, error.reason)
        finally:
            entry.ended_at = traffic.now
        entry.status = response.status
        if is_read and isinstance(response, web.Response) and isinstance(response.body, bytes):
            traffic.transcript.sent(f"{response.status} {response.body.decode()}")
        traffic.news()
        return response

    return record


def reply(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A JSON body."""
    return web.Response(
        body=orjson.dumps(body), status=status, content_type="application/json", headers=headers
    )


def retry_after(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(seconds)}
