"""CORS: what a browser is told about pages of another origin that may use the server."""

import re

from aiohttp import hdrs, web

METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
EXPOSED = ", ".join((
    "X-Request-Id", "Last-Event-ID", "Retry-After", "Location", "Allow", "Content-Disposition", "Idempotent-Replayed",
))
"""Headers of answers that a page may read beside those that every page may."""
SECONDS = "600"
"""How long a browser may remember the answer to a preflight request."""
ANY = "*"

CORS_ORIGIN = web.RequestKey("cors_origin", str)
"""Set where a page of another origin may use the server: that origin, or `*` where every origin is listed."""

PRIVATE_NETWORK = "Access-Control-{}-Private-Network"
_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2000}")


def is_preflight(request: web.BaseRequest) -> bool:
    return request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers


def answer_preflight(request: web.BaseRequest) -> web.Response:
    """Allow what the page asks for; `mark` adds the origin."""
    wanted = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
    headers: dict[str, str] = {hdrs.ACCESS_CONTROL_ALLOW_METHODS: METHODS, hdrs.ACCESS_CONTROL_MAX_AGE: SECONDS}
    if _NAMES.fullmatch(wanted):
        headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = wanted
    if request.headers.get(PRIVATE_NETWORK.format("Request")) == "true":
        headers[PRIVATE_NETWORK.format("Allow")] = "true"
    return web.Response(status=204, headers=headers)


async def mark(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """To be called before a response is sent: every answer to a listed page says that the page may read it."""
    if hdrs.ORIGIN not in request.headers:
        return
    response.headers.add(hdrs.VARY, hdrs.ORIGIN)
    origin = request.get(CORS_ORIGIN)
    if origin is None:
        return
    response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
    response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = EXPOSED
    if origin != ANY:
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_CREDENTIALS] = "true"
