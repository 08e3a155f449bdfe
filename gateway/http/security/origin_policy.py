"""Refuses requests by Host and Origin, held to allow-lists, before their body is read; answers CORS requests."""

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from aiohttp import hdrs, web

from gateway.errors import Forbidden
from gateway.field_errors import quote_value
from gateway.http.request import request_id_of

from .auth import Handler, policy_of
from .trusted_proxies import ExternalAddress, TrustedProxies

WILDCARD = "*"
LOOPBACK = "loopback"
"""Stands for the pages of this machine in a list of origins."""
DESKTOP_APP_ORIGINS = ("tauri://localhost", "http://tauri.localhost", "https://tauri.localhost")
"""The origins of pages in a desktop app on this machine; each operating system has its own."""
MAX_HOST_LENGTH, CACHED_HOSTS = 300, 256
"""The longest host, and the number of parsed hosts that are cached: most requests name the same."""
DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#@]+)", re.IGNORECASE)


class Authority(NamedTuple):
    """A host and its port, as in a Host header or an origin; port None is the default of the scheme."""

    host: str
    port: int | None

    @classmethod
    def read(cls, text: str) -> "Authority | None":
        """Return None if the text is not a host; IP addresses get their shortest form, names lower case."""
        return _authority(text) if len(text) <= MAX_HOST_LENGTH else None

    def equals(self, other: "Authority", scheme: str) -> bool:
        """Say whether both are the same host and port for a page with this scheme."""
        usual = DEFAULT_PORTS.get(scheme)
        return self.host == other.host and (self.port or usual) == (other.port or usual)


class AllowList:
    """The allow-list of the settings; a reload makes another.

    `host` is the address that the server listens on, `hosts` are further names of the server, and `origins` are the
    origins of pages; None allows the pages of this machine if the server listens on a loopback address.
    """

    def __init__(
        self, host: str = "127.0.0.1", hosts: Sequence[str] = (), origins: Sequence[str] | None = None,
    ) -> None:
        if origins is None:
            origins = (LOOPBACK,) if is_loopback(normalize_host(host)) else ()
        self.allows_every_origin = WILDCARD in origins
        self._allows_every_host = WILDCARD in hosts
        self._allows_loopback = LOOPBACK in origins
        self._hosts = {normalize_host(name) for name in (host, *hosts)}
        self._suffixes = tuple(name[1:].lower() for name in hosts if name.startswith("*."))
        self._origins = {origin.lower().rstrip("/") for origin in origins} - {WILDCARD, LOOPBACK}
        if self._allows_loopback:
            self._origins |= {*DESKTOP_APP_ORIGINS}

    def allows_host(self, name: str, arrived_at: str | None) -> bool:
        """Say whether the server has this Host name; `arrived_at` is the local address of the connection."""
        found = Authority.read(name)
        if found is None:
            return False
        return (
            self._allows_every_host or found.host in self._hosts or is_loopback(found.host)
            or found.host.endswith(self._suffixes)
            or (arrived_at is not None and found.host == normalize_host(arrived_at))
        )

    def allows_origin(self, origin: str) -> bool:
        """Say whether pages of this origin are allowed by name, or as pages of this machine."""
        origin = origin.lower()
        if origin in self._origins:
            return True
        found = _ORIGIN.fullmatch(origin)
        if not self._allows_loopback or found is None or found[1] not in ("http", "https"):
            return False
        authority = Authority.read(found[2])
        return authority is not None and is_loopback(authority.host)


def is_same_origin(origin: str, scheme: str, host: str) -> bool:
    """Say whether a page of this origin came from the server itself, which was asked at `scheme://host`.

    A server behind a proxy that ends TLS may see http: https is its own origin as well.
    """
    found, here = _ORIGIN.fullmatch(origin.lower()), Authority.read(host)
    if found is None or here is None or found[1] not in (scheme, "https"):
        return False
    there = Authority.read(found[2])
    return there is not None and there.equals(here, found[1])


def is_loopback(host: str) -> bool:
    """Say whether a normalized host is this machine for every browser, without a DNS lookup."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def normalize_host(host: str) -> str:
    """Return a host in the form that is compared: no brackets, no zone, no last dot, no mapped address."""
    host = host.lower().strip("[]").partition("%")[0].removesuffix(".")
    address = _address(host)
    return host if address is None else str(address)


@lru_cache(CACHED_HOSTS)
def _authority(text: str) -> Authority | None:
    found = _AUTHORITY.fullmatch(text)
    return Authority(normalize_host(found[1]), int(found[2]) if found[2] else None) if found else None


@lru_cache(CACHED_HOSTS)
def _address(host: str) -> IPv4Address | IPv6Address | None:
    if not (":" in host or host[-1:].isdecimal()):
        return None
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


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
        if not self.proxies.is_worker(request):
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
