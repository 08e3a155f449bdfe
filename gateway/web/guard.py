"""Who is asking: every route is guarded unless it says that it is public."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from aiohttp import web

from gateway.errors import Unauthenticated

from .connections import admit

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
H = TypeVar("H")

OWNER = web.RequestKey("owner", str)
NOBODY = ""
"""The owner of everything where nobody has to say who they are."""


class Keys(Protocol):
    """Who knows whose key this is."""

    def verify(self, token: str) -> str | None: ...


def public(handler: H) -> H:
    """Mark a handler as open to those who do not say who they are."""
    handler.public = True  # type: ignore[attr-defined]
    return handler


class Guard:
    """Turns a token into a user; with no keys to check, everybody is the same nobody and tokens are ignored."""

    def __init__(self, keys: Keys | None) -> None:
        self._keys = keys

    def owner_of(self, token: str | None) -> str:
        if self._keys is None:
            return NOBODY
        if not token:
            raise Unauthenticated("a key is required: send the header 'Authorization: Bearer <key>'")
        owner = self._keys.verify(token)
        if owner is None:
            raise Unauthenticated("this key is not known")
        return owner

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info.http_exception is None and not getattr(request.match_info.handler, "public", False):
            request[OWNER] = self.owner_of(bearer(request))
            admit(request)
        return await handler(request)


def bearer(request: web.Request) -> str | None:
    """The caller's token; some clients can only be told to send it as `X-Api-Key`."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    if "X-Api-Key" not in request.headers and request.headers.get("Upgrade", "").lower() == "websocket":
        return request.query.get("token")  # a page that opens a socket can send no header
    return request.headers.get("X-Api-Key")
