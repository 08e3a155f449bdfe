"""Server-sent events: a subscription pumped into a response, all that is ready in one write."""

from aiohttp import web
from aiohttp_sse import EventSourceResponse

from gateway.ports import Subscription

HELLO = b": open\n\n"
"""A comment sent at once, so that a client and every proxy on the way know the stream is there."""


async def pump(
    request: web.Request, subscription: Subscription, *, heartbeat: float, patience: float, until_yield: bool = False,
) -> web.StreamResponse:
    """Stream until the subscription is over or, if so asked, until the turn yields.

    The response pings every `heartbeat` seconds, and aborts the connection of a peer that takes nothing for `patience`.
    """
    response = EventSourceResponse(
        sep="\n", allow_all_methods=True, ping_interval=heartbeat, send_timeout=patience,
    )
    await response.prepare(request)
    async with response:
        await response.write(HELLO)
        while chunks := await subscription.chunks():
            frames: list[bytes] = []
            for chunk in chunks:
                frames += chunk.frames
                if until_yield and chunk.yields:
                    await response.write(b"".join(frames))
                    return response
            await response.write(b"".join(frames))
    return response
