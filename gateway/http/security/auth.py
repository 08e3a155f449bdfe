"""Authenticates requests as the policy of each route demands; a revoked credential ends its open requests."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeVar

from aiohttp import web

from gateway.errors import Forbidden, Unauthenticated
from gateway.ports import ANONYMOUS, Caller, Clock

from .client_names import client_name
from .connection_limits import mark_authenticated

H = TypeVar("H")
_ATTRIBUTE = "route_policy"


@dataclass(frozen=True)
class RoutePolicy:
    """What a route demands of its requests; a handler without a policy demands a credential and JSON."""

    is_public: bool = False
    """No credential is needed."""
    for_admins: bool = False
    """Only admins may call the route: it shows or changes data of all users."""
    any_content_type: bool = False
    """Browsers may send a body of any content type."""
    is_counted_by_message: bool = False
    """What counts as a use is each message that comes over the connection, not each request of its transport."""
    is_idempotent: bool = False
    """The handler executes requests with an Idempotency-Key once."""


DEFAULT_POLICY = RoutePolicy()


def policy_of(handler: object) -> RoutePolicy:
    policy: RoutePolicy = getattr(handler, _ATTRIBUTE, DEFAULT_POLICY)
    return policy


def mark(handler: H, **changes: bool) -> H:
    """Change the policy of a handler; `functools.wraps` carries the policy over to a wrapper."""
    setattr(handler, _ATTRIBUTE, replace(policy_of(handler), **changes))
    return handler


def public(handler: H) -> H:
    """Mark a handler that needs no credential."""
    return mark(handler, is_public=True)


def counted_by_message(handler: H) -> H:
    """Mark a handler whose requests are only the transport of messages that are counted."""
    return mark(handler, is_counted_by_message=True)


def is_counted_by_message(handler: object) -> bool:
    return policy_of(handler).is_counted_by_message


def admins_only(handler: H) -> H:
    """Mark a handler that shows or changes data of all users: only admins may call it."""
    return mark(handler, for_admins=True)


def accepts_any_content_type(handler: H) -> H:
    """Mark a handler that accepts a body of any content type."""
    return mark(handler, any_content_type=True)


__all__ = [
    "ANONYMOUS",
    "CALLER",
    "OWNER",
    "Authenticator",
    "Handler",
    "bearer_token",
    "current_caller",
    "set_current_caller",
]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CALLER = web.RequestKey("caller", Caller)
OWNER = web.RequestKey("owner", str)
"""The user of the caller."""
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_CURRENT: ContextVar[Caller | None] = ContextVar("caller", default=None)


class VerifiedKey(Protocol):
    """A valid key."""

    @property
    def name(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def hash(self) -> str: ...


class KeyVerifier(Protocol):
    """Verifies keys."""

    async def verify(self, token: str, address: str) -> VerifiedKey | None: ...


class TokenVerifier(Protocol):
    """Verifies signed tokens; raises `Unauthenticated` with the reason."""

    async def verify(self, token: str) -> Caller: ...


def current_caller() -> Caller | None:
    """Return the caller of the running task; None for work of the server itself."""
    return _CURRENT.get()


@dataclass(eq=False, slots=True)
class OpenRequest:
    """One open request or socket of an authenticated client; `abort` ends it when the credential is revoked."""

    credential: str
    abort: Callable[[], None]
    expiry: asyncio.TimerHandle | None = None
    is_revoked: bool = False
    """Whether the credential was revoked; further input of the client is ignored."""

    def on_revoked(self, abort: Callable[[], None]) -> None:
        """End the request in another way, such as with a close frame."""
        self.abort = abort


class OpenRequests:
    """The open requests by credential."""

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self._open: dict[str, set[OpenRequest]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def add(self, caller: Caller, end: Callable[[], None]) -> OpenRequest:
        made = OpenRequest(caller.credential, end)
        self._open.setdefault(caller.credential, set()).add(made)
        if caller.expires is not None:
            left = max(0.0, caller.expires - self._clock())
            made.expiry = asyncio.get_running_loop().call_later(left, self._cut, made)
        return made

    def discard(self, admission: OpenRequest) -> None:
        if admission.expiry is not None:
            admission.expiry.cancel()
        if (held := self._open.get(admission.credential)) is not None:
            held.discard(admission)
            if not held:
                del self._open[admission.credential]

    def revoke(self, credentials: Iterable[str]) -> None:
        """Cut all open requests of these credentials after a moment."""
        for credential in credentials:
            for admission in self._open.get(credential, ()):
                admission.is_revoked = True
                asyncio.get_running_loop().call_later(REVOCATION_GRACE_SECONDS, self._cut, admission)

    def _cut(self, admission: OpenRequest) -> None:
        if admission in self._open.get(admission.credential, ()):
            admission.is_revoked = True
            admission.abort()


class Authenticator:
    """Turns a key or a token into a caller; without keys and tokens all callers are one anonymous user."""

    def __init__(
        self,
        keys: KeyVerifier | None,
        tokens: TokenVerifier | None = None,
        *,
        admins: Callable[[], Collection[str]] = tuple,
        open_requests: OpenRequests | None = None,
        tagged: Callable[[], Collection[str]] = tuple,
        observe: Callable[[web.Request], None] = lambda request: None,
    ) -> None:
        self._observe = observe
        """Called with each request that is let in, before it is served."""
        self._tagged = tagged
        """The names of headers, in lower case, that callers keep."""
        self._keys = keys
        self._tokens = tokens
        self._admins = admins
        self.open_requests = OpenRequests() if open_requests is None else open_requests

    async def authenticate(
        self, token: str | None, address: str = "", headers: Mapping[str, str] = NO_HEADERS, client: str = "",
    ) -> Caller:
        """Return the caller of this credential, and what its request says of it; raises `Unauthenticated`."""
        client = client or (client_name(headers) if headers else "")
        tags = {name: headers[name] for name in self._tagged() if name in headers}
        if self._keys is None and self._tokens is None:
            # whoever can connect is the operator
            return Caller(user=ANONYMOUS, address=address, client=client, tags=tags, role="admin")
        if not token:
            raise Unauthenticated("a key is required: send the header 'Authorization: Bearer <key>'")
        is_signed = token.count(".") == 2  # a key has no dots
        if self._tokens is not None and is_signed:
            caller = await self._tokens.verify(token)
            user, credential, name, expires = caller.user, caller.credential, caller.key, caller.expires
        else:
            key = None if self._keys is None or is_signed else await self._keys.verify(token, address)
            if key is None:
                raise Unauthenticated("unknown key")
            user, credential, name, expires = key.user, key.hash, key.name, None
        return Caller(
            user=user, credential=credential, key=name, address=address, client=client, tags=tags,
            expires=expires,
            role="admin" if user in self._admins() else "user",
        )

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        policy = policy_of(request.match_info.handler)
        if request.match_info.http_exception is not None or policy.is_public:
            self._observe(request)
            return await handler(request)
        caller = await self.authenticate(bearer_token(request), request.remote or "", request.headers)
        if not caller.is_admin and policy.for_admins:
            raise Forbidden(f"only admins may do this: list the user '{caller.user}' under `admins:` in config.yaml")
        request[CALLER], request[OWNER] = caller, caller.user
        set_current_caller(caller)
        mark_authenticated(request)
        self._observe(request)
        if not caller.credential:
            return await handler(request)
        admission = request[OPEN_REQUEST] = self.open_requests.add(caller, partial(_abort_request, request))
        response: web.StreamResponse | None = None
        try:
            response = await handler(request)
            return response
        finally:
            task = asyncio.current_task()
            if isinstance(response, web.FileResponse) and task is not None:  # the task sends the file
                task.add_done_callback(lambda done: self.open_requests.discard(admission))
            else:
                self.open_requests.discard(admission)


def set_current_caller(caller: Caller) -> None:
    """Set the caller of the running task."""
    _CURRENT.set(caller)


def _abort_request(request: web.Request) -> None:
    """End the request as if its client had disconnected: the server cancels the handler."""
    if request.transport is not None:
        request.transport.abort()


def bearer_token(request: web.Request) -> str | None:
    """Return the token of the caller; some clients can only send it as `X-Api-Key`."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    if "X-Api-Key" not in request.headers and request.headers.get("Upgrade", "").lower() == "websocket":
        return request.query.get("token")  # a page that opens a WebSocket cannot send headers
    return request.headers.get("X-Api-Key")


REVOCATION_GRACE_SECONDS = 0.25
"""Seconds after which an open request of a revoked credential is cut; a request that is nearly finished may finish."""
REVOKED_MESSAGE = b"the key was revoked or has expired"
"""The reason in the close frame of a WebSocket."""
OPEN_REQUEST = web.RequestKey("admission", OpenRequest)
