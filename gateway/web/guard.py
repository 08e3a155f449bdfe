"""Who is asking: every route is guarded unless it says that it is public."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextvars import ContextVar
from functools import partial
from typing import Protocol, TypeVar

from aiohttp import web

from gateway.errors import Forbidden, Unauthenticated
from gateway.ports import NOBODY, Caller

from .admissions import ADMISSION, Admissions
from .connections import admit

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
H = TypeVar("H")

CALLER = web.RequestKey("caller", Caller)
OWNER = web.RequestKey("owner", str)
"""The caller's user."""
_CURRENT: ContextVar[Caller | None] = ContextVar("caller", default=None)


class KnownKey(Protocol):
    """A key that opens."""

    @property
    def name(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def hash(self) -> str: ...


class Keys(Protocol):
    """Who knows whose key this is."""

    async def verify(self, token: str, address: str) -> KnownKey | None: ...


class Tokens(Protocol):
    """Who knows whether a signed token is good; raises `Unauthenticated` with the reason if it is not."""

    async def verify(self, token: str) -> Caller: ...


def public(handler: H) -> H:
    """Mark a handler as open to those who do not say who they are."""
    handler.public = True  # type: ignore[attr-defined]
    return handler


def for_admins(handler: H) -> H:
    """Mark a handler that shows or changes what is everybody's: only those whom `admins:` lists may call it."""
    handler.for_admins = True  # type: ignore[attr-defined]
    return handler


def current_caller() -> Caller | None:
    """On whose behalf the running task works; None if it is the server's own."""
    return _CURRENT.get()


class Guard:
    """Turns a key or a token into a caller; with nothing to check, everybody is the same nobody."""

    def __init__(
        self, keys: Keys | None, tokens: Tokens | None = None, *, admins: Callable[[], Collection[str]] = tuple,
        admissions: Admissions | None = None,
    ) -> None:
        self._keys = keys
        self._tokens = tokens
        self._admins = admins
        self.admissions = Admissions() if admissions is None else admissions

    async def identify(self, token: str | None, address: str = "") -> Caller:
        """Who shows this; raises `Unauthenticated`."""
        if self._keys is None and self._tokens is None:
            return Caller(user=NOBODY, address=address, role="admin")  # whoever can connect is the operator
        if not token:
            raise Unauthenticated("a key is required: send the header 'Authorization: Bearer <key>'")
        is_signed = token.count(".") == 2  # a key has no dots
        if self._tokens is not None and is_signed:
            caller = await self._tokens.verify(token)
            user, credential, name, expires = caller.user, caller.credential, caller.key, caller.expires
        else:
            key = None if self._keys is None or is_signed else await self._keys.verify(token, address)
            if key is None:
                raise Unauthenticated("this key is not known")
            user, credential, name, expires = key.user, key.hash, key.name, None
        return Caller(
            user=user, credential=credential, key=name, address=address, expires=expires,
            role="admin" if user in self._admins() else "user",
        )

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info.http_exception is not None or getattr(request.match_info.handler, "public", False):
            return await handler(request)
        caller = await self.identify(bearer(request), request.remote or "")
        if not caller.is_admin and getattr(request.match_info.handler, "for_admins", False):
            raise Forbidden(f"this is for admins: list the user '{caller.user}' under `admins:` in config.yaml")
        request[CALLER], request[OWNER] = caller, caller.user
        act_as(caller)
        admit(request)
        if not caller.credential:
            return await handler(request)
        admission = request[ADMISSION] = self.admissions.add(caller, partial(_cut, request))
        response: web.StreamResponse | None = None
        try:
            response = await handler(request)
            return response
        finally:
            task = asyncio.current_task()
            if isinstance(response, web.FileResponse) and task is not None:  # the file is sent by the task, not by us
                task.add_done_callback(lambda done: self.admissions.discard(admission))
            else:
                self.admissions.discard(admission)


def act_as(caller: Caller) -> None:
    """From now on the running task works on behalf of this caller."""
    _CURRENT.set(caller)


def _cut(request: web.Request) -> None:
    """End the request as if its client had left: the server cancels the handler."""
    if request.transport is not None:
        request.transport.abort()


def bearer(request: web.Request) -> str | None:
    """The caller's token; some clients can only be told to send it as `X-Api-Key`."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    if "X-Api-Key" not in request.headers and request.headers.get("Upgrade", "").lower() == "websocket":
        return request.query.get("token")  # a page that opens a socket can send no header
    return request.headers.get("X-Api-Key")


__all__ = [
    "CALLER", "NOBODY", "OWNER", "Guard", "Handler", "act_as", "bearer", "current_caller", "for_admins", "public",
]
