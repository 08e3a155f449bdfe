"""Reads `X-Forwarded-*` headers of trusted proxies."""

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import NamedTuple

from aiohttp import hdrs, web

FORWARDED_FOR, FORWARDED_PROTO, FORWARDED_HOST = "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"
SCHEMES = ("http", "https")
UNIX_PEER = ""
"""The address of a peer on a Unix socket."""


class ExternalAddress(NamedTuple):
    """How a client reached the server: `scheme://host`, from this address; host "" if the client sent none."""

    scheme: str
    host: str
    address: str | None


class TrustedProxies:
    """The addresses and networks of the proxies in front of the server."""

    def __init__(self, networks: Sequence[str] = (), *, has_workers: bool = False) -> None:
        self._networks = tuple(ip_network(network, strict=False) for network in networks)
        self._has_workers = has_workers

    def is_worker(self, request: web.BaseRequest) -> bool:
        """Whether another worker of this server passes the request on; it has checked where the request comes from."""
        return self._has_workers and request.remote == UNIX_PEER

    def external_address(self, request: web.BaseRequest) -> ExternalAddress:
        """Return what the nearest proxy says, if it is trusted; otherwise the connection and the Host header."""
        direct = ExternalAddress(request.scheme, _host(request), request.remote)
        if not self.is_worker(request) and (not self._networks or not self._trusts(request.remote)):
            return direct
        scheme, host = _last(request, FORWARDED_PROTO).lower(), _last(request, FORWARDED_HOST)
        return ExternalAddress(
            scheme if scheme in SCHEMES else direct.scheme, host or direct.host,
            self._client(request) or direct.address,
        )

    def _client(self, request: web.BaseRequest) -> str | None:
        """Return the last address that is not a trusted proxy; anybody may have written those before it."""
        found = None
        for address in reversed(_values(request, FORWARDED_FOR)):
            if _normalize_ip(address) is None:
                break
            found = _normalize_ip(address)
            if not self._trusts(found):
                break
        return found

    def _trusts(self, address: str | None) -> bool:
        plain = _normalize_ip(address or "")
        if plain is None:
            return False
        at = ip_address(plain)
        return any(at in network for network in self._networks)


def _host(request: web.BaseRequest) -> str:
    """Return the host of the request target if it has one, which precedes the Host header (RFC 9112, 3.2.2)."""
    target = request._message.url
    return target.authority if target.absolute else request.headers.get(hdrs.HOST, "")


def _values(request: web.BaseRequest, name: str) -> list[str]:
    return [value.strip() for line in request.headers.getall(name, ()) for value in line.split(",") if value.strip()]


def _last(request: web.BaseRequest, name: str) -> str:
    """Return the value that the nearest proxy wrote."""
    return next(reversed(_values(request, name)), "")


def _normalize_ip(address: str) -> str | None:
    """Return an address without brackets, zone and port; None if it is not an address."""
    address = address.strip().partition("%")[0]
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    try:
        found = ip_address(address)
    except ValueError:
        return None
    return str(getattr(found, "ipv4_mapped", None) or found)
