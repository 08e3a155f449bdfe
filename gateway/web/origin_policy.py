"""The origin policy: a middleware that refuses requests by their Host and Origin before anything of them is read."""

from typing import TypeVar

from aiohttp import hdrs, web

from gateway.errors import Forbidden
from gateway.field_errors import shown

from .allow_list import AllowList, is_own
from .cors import ANY, CORS_ORIGIN, answer_preflight, is_preflight
from .guard import Handler
from .tracing import request_id_of
from .trusted_proxies import Reached, TrustedProxies

H = TypeVar("H")

SITE, MODE, DEST = "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"
"""Headers that a browser adds, and that no page can set."""


def takes_any_type(handler: H) -> H:
    """Mark a handler whose body is not JSON, whatever its type says."""
    handler.takes_any_type = True  # type: ignore[attr-defined]
    return handler


class OriginPolicy:
    """Which requests are let in; a reload gives it another list and other proxies."""

    def __init__(self, allowed: AllowList, proxies: TrustedProxies) -> None:
        self.allowed = allowed
        self.proxies = proxies

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        reached = self.proxies.reached(request)
        self._check_host(request, reached.host)
        self._check_origin(request, reached)
        if CORS_ORIGIN in request and is_preflight(request):
            return answer_preflight(request)
        _check_type(request)
        return await handler(_as_reached(request, reached))

    def _check_host(self, request: web.Request, host: str) -> None:
        if not host and request.version < (1, 1):
            return  # browsers always say whom they ask; a probe of the last century does not
        arrived_at = request.transport.get_extra_info("sockname") if request.transport else None
        if not self.allowed.has_host(host, arrived_at[0] if isinstance(arrived_at, tuple) else None):
            raise web.HTTPMisdirectedRequest(reason=(
                f"this server does not answer to the name {shown(host)}; if clients reach it by that name, through a "
                "proxy for example, add the name to `hosts:` in config.yaml"
            ))

    def _check_origin(self, request: web.Request, reached: Reached) -> None:
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            if request.headers.get(SITE) == "cross-site" and not _is_navigation(request):
                raise Forbidden(
                    "a page of another site may not use this server without saying its origin; "
                    "send the request with CORS, and list the page in `origins:` in config.yaml")
        elif self.allowed.lists(origin):
            request[CORS_ORIGIN] = origin
        elif is_own(origin, reached.scheme, reached.host):
            return
        elif self.allowed.allows_every_origin:
            request[CORS_ORIGIN] = ANY
        else:
            raise Forbidden(
                f"pages of {shown(origin)} may not use this server; to let them in, add that origin to `origins:` in "
                "config.yaml")


def _is_navigation(request: web.Request) -> bool:
    """Whether somebody follows a link: the answer is shown in a window of its own, and no page can read it."""
    return (
        request.method in (hdrs.METH_GET, hdrs.METH_HEAD) and request.headers.get(MODE) == "navigate"
        and request.headers.get(DEST) == "document"
    )


def _check_type(request: web.Request) -> None:
    """A form of another site can send any words as text: where a browser sends a body, its type must be JSON's."""
    headers = request.headers
    if not request.body_exists or (hdrs.ORIGIN not in headers and SITE not in headers):
        return
    kind = request.content_type if hdrs.CONTENT_TYPE in headers else "none"
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not is_json and kind != "multipart/form-data" and not _takes_any_type(request):
        raise web.HTTPUnsupportedMediaType(reason=(
            f"Content-Type: a browser must send application/json or multipart/form-data, not {shown(kind)}"
        ))


def _takes_any_type(request: web.Request) -> bool:
    return getattr(request.match_info.handler, "takes_any_type", False)


def _as_reached(request: web.Request, reached: Reached) -> web.Request:
    """The request with the scheme, the host and the address of the client as the proxies tell them."""
    if reached.host and reached == (request.scheme, request.host, request.remote):
        return request
    host = reached.host or _own_address(request)
    request_id_of(request)  # the copy has the same
    return request.clone(rel_url=request.rel_url, scheme=reached.scheme, host=host, remote=reached.address or "")


def _own_address(request: web.Request) -> str:
    """The server's end of the connection, for links of those who did not say whom they ask."""
    name = request.transport.get_extra_info("sockname") if request.transport else None
    if not isinstance(name, tuple):
        return "localhost"
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"
