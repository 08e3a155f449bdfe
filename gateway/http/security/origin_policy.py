"""Refuses requests by Host and Origin before their body is read, and answers CORS requests of allowed pages."""

import re

from aiohttp import hdrs, web

from gateway.errors import Forbidden
from gateway.field_errors import quote_value
from gateway.http.request_id import request_id_of

from .allow_list import AllowList, is_same_origin
from .auth import Handler
from .route_policy import policy_of
from .trusted_proxies import ExternalAddress, TrustedProxies

SITE, MODE, DEST = "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"
"""Headers that only browsers add, and that no page can set."""


class OriginPolicy:
    """Decides which requests are accepted; a reload replaces the allow-list and the proxies."""

    def __init__(self, allowed: AllowList, proxies: TrustedProxies) -> None:
        self.allowed = allowed
        self.proxies = proxies

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        reached = self.proxies.external_address(request)
        self._check_host(request, reached.host)
        self._check_origin(request, reached)
        if CORS_ORIGIN in request and is_preflight(request):
            return answer_preflight(request)
        _check_type(request)
        return await handler(_with_external_address(request, reached))

    def _check_host(self, request: web.Request, host: str) -> None:
        if not host and request.version < (1, 1):
            return  # browsers always send a Host; an HTTP/1.0 probe does not
        arrived_at = request.transport.get_extra_info("sockname") if request.transport else None
        if not self.allowed.allows_host(host, arrived_at[0] if isinstance(arrived_at, tuple) else None):
            raise web.HTTPMisdirectedRequest(
                reason=(
                    f"this server does not answer to the name {quote_value(host)}; if clients reach it by that name, "
                    "through a proxy for example, add the name to `hosts:` in config.yaml"
                )
            )

    def _check_origin(self, request: web.Request, reached: ExternalAddress) -> None:
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            if request.headers.get(SITE) == "cross-site" and not _is_navigation(request):
                raise Forbidden(
                    "a page of another site may not use this server without saying its origin; "
                    "send the request with CORS, and list the page in `origins:` in config.yaml")
        elif self.allowed.allows_origin(origin):
            request[CORS_ORIGIN] = origin
        elif is_same_origin(origin, reached.scheme, reached.host):
            return
        elif self.allowed.allows_every_origin:
            request[CORS_ORIGIN] = ANY_ORIGIN
        else:
            raise Forbidden(
                f"pages of {quote_value(origin)} may not use this server; to allow them, add that origin to "
                "`origins:` in config.yaml"
            )


def _is_navigation(request: web.Request) -> bool:
    """Say whether a user follows a link: the response is shown in its own window, and no page can read it."""
    return (
        request.method in (hdrs.METH_GET, hdrs.METH_HEAD) and request.headers.get(MODE) == "navigate"
        and request.headers.get(DEST) == "document"
    )


def _check_type(request: web.Request) -> None:
    """Check the content type: a form of another site can send any text, but not with the type of JSON."""
    headers = request.headers
    if not request.body_exists or (hdrs.ORIGIN not in headers and SITE not in headers):
        return
    kind = request.content_type if hdrs.CONTENT_TYPE in headers else "none"
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not is_json and kind != "multipart/form-data" and not policy_of(request.match_info.handler).any_content_type:
        raise web.HTTPUnsupportedMediaType(reason=(
            f"Content-Type: a browser must send application/json or multipart/form-data, not {quote_value(kind)}"
        ))


def _with_external_address(request: web.Request, reached: ExternalAddress) -> web.Request:
    """Return the request with scheme, host and client address as the trusted proxies give them."""
    if reached.host and reached == (request.scheme, request.host, request.remote):
        return request
    host = reached.host or _own_address(request)
    request_id_of(request)  # the copy has the same
    return request.clone(rel_url=request.rel_url, scheme=reached.scheme, host=host, remote=reached.address or "")


def _own_address(request: web.Request) -> str:
    """Return the local address of the connection, for links of clients that sent no Host."""
    name = request.transport.get_extra_info("sockname") if request.transport else None
    if not isinstance(name, tuple):
        return "localhost"
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"


ALLOWED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
EXPOSED_HEADERS = ", ".join((
    "X-Request-Id", "Last-Event-ID", "Retry-After", "Location", "Allow", "Content-Disposition", "Idempotent-Replayed",
))
"""Headers of responses that a page of another origin may read."""
PREFLIGHT_SECONDS = "600"
"""Seconds that a browser may cache the response to a preflight request."""
ANY_ORIGIN = "*"
CORS_ORIGIN = web.RequestKey("cors_origin", str)
"""The allowed origin of the page: the origin itself, or `*` if every origin is allowed."""
PRIVATE_NETWORK_HEADER = "Access-Control-{}-Private-Network"
_HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2000}")


def is_preflight(request: web.BaseRequest) -> bool:
    return request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers


def answer_preflight(request: web.BaseRequest) -> web.Response:
    """Allow what the page asks for; `add_cors_headers` adds the origin."""
    wanted = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
    headers: dict[str, str] = {
        hdrs.ACCESS_CONTROL_ALLOW_METHODS: ALLOWED_METHODS,
        hdrs.ACCESS_CONTROL_MAX_AGE: PREFLIGHT_SECONDS,
    }
    if _HEADER_NAMES.fullmatch(wanted):
        headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = wanted
    if request.headers.get(PRIVATE_NETWORK_HEADER.format("Request")) == "true":
        headers[PRIVATE_NETWORK_HEADER.format("Allow")] = "true"
    return web.Response(status=204, headers=headers)


async def add_cors_headers(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the headers that let an allowed page read the response; called before a response is sent."""
    if hdrs.ORIGIN not in request.headers:
        return
    response.headers.add(hdrs.VARY, hdrs.ORIGIN)
    origin = request.get(CORS_ORIGIN)
    if origin is None:
        return
    response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
    response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = EXPOSED_HEADERS
    if origin != ANY_ORIGIN:
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_CREDENTIALS] = "true"
