"""The allow-list of a server: its Host names, and the origins whose pages may use it."""

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

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
