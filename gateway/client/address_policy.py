"""Which network addresses clients may name: public http and https addresses, and those that the operator allows.

An address of a client is checked twice: as text when the client names it, and as an IP address when a connection is
opened. The second check sees the answer of DNS, so a name that resolves to another address by then is refused, too.
Addresses in config.yaml belong to the operator and are never checked.
"""

import asyncio
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from errno import EACCES
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from unicodedata import normalize
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

from gateway.errors import Invalid
from gateway.ports import Addresses

IP = IPv4Address | IPv6Address
AddressInfo = tuple[Any, Any, int, str, Any]
"""One result of `getaddrinfo`."""
SocketFactory = Callable[[AddressInfo], socket.socket]

SCHEMES = ("https", "http")
LOCAL_NAMES = ("localhost", "localdomain", "local", "internal", "home.arpa")
"""Domains that are reserved for the own machine or network; cloud metadata services have names in `internal`."""
LOOKUP_SECONDS = 3.0
MAX_HOSTS = 256
"""The number of different hosts that one message may name."""
UNRESOLVABLE = "its host name cannot be looked up"
MAX_LOOKUPS = 4
"""Threads for DNS lookups: a slow name server must not delay other work."""
UNSAFE = re.compile(r"[\s\x00-\x20\x7f\\]")
HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
ADVICE = ("a client may name public http:// and https:// addresses; others need `outbound: {allow: [...]}` in the "
          "server's config.yaml")

_PUBLIC_IPV6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_NOT_PUBLIC = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))
"""Networks for protocol assignments, and the metadata address of one cloud."""


class AddressRefused(OSError):
    """A connection to an address that clients may not name was not opened."""


class AddressPolicy:
    """What clients may name; `allow` has host names (`mcp.corp.example`, `*.corp.example`) and networks."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        networks, names = list[IPv4Network | IPv6Network](), list[str]()
        for entry in allow:
            network = parse_network(entry)
            if network is None:
                names.append(_plain_host(entry))
            else:
                networks.append(network)
        self._networks = tuple(networks)
        self._names = frozenset(name for name in names if not name.startswith("*."))
        self._suffixes = tuple(name[1:] for name in names if name.startswith("*."))
        self._lookups: ThreadPoolExecutor | None = None

    # -- as text --------------------------------------------------------------------------------------------------

    def check(self, url: str, field: str) -> None:
        """Raise `Invalid`, with the name of the field, for an address whose text is not allowed."""
        if (problem := self.problem(url)) is not None:
            raise Invalid(f"{field}: {problem}", param=field)

    def problem(self, url: str) -> str | None:
        """Return why a client may not name this address; None if its text is allowed."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return f"this is not a URL; {ADVICE}"
        if parts.scheme not in SCHEMES:
            return f"expected an address that begins with http:// or https://, not '{parts.scheme[:32]}:'"
        if not host or port == 0 or UNSAFE.search(url) or parts.netloc.count("@") > 1:
            return f"this is not a URL; {ADVICE}"
        return self._problem_of_host(_plain_host(host))

    def _problem_of_host(self, host: str) -> str | None:
        if self.allows_name(host):
            return None
        address = ip_literal(host)
        if address is not None:
            return None if self.permits(address) else f"'{host}' is not a public address; {ADVICE}"
        if not HOST_NAME.fullmatch(host):
            return f"'{host[:64]}' is not a host name; write international names in their ASCII form (xn--…)"
        if "." not in host or any(host == name or host.endswith(f".{name}") for name in LOCAL_NAMES):
            return f"'{host[:64]}' is a name of the server's own machine or network; {ADVICE}"
        return None

    def allows_name(self, host: str) -> bool:
        """Say whether the operator allows this host name; it may then resolve to any address."""
        plain = _plain_host(host)
        return plain in self._names or any(plain.endswith(suffix) for suffix in self._suffixes)

    # -- as an IP address -----------------------------------------------------------------------------------------

    def permits(self, address: IP) -> bool:
        """Say whether a connection to this IP address may be opened for a client."""
        return is_public(address) or any(
            one in network for network in self._networks for one in (address, embedded_ipv4(address)) if one is not None
        )

    def socket_factory(self, host: str) -> SocketFactory:
        """Return the hook that opens sockets to this host; it sees the address after the DNS lookup."""
        is_listed = self.allows_name(host)

        def opened(info: AddressInfo) -> socket.socket:
            family, kind, protocol, _, place = info
            if not is_listed and not self.permits(_ip_of(info)):
                raise AddressRefused(EACCES, f"{host} resolves to {place[0]}, which is not a public address")
            return socket.socket(family, kind, protocol)

        return opened

    async def problem_resolved(self, url: str) -> str | None:
        """Return the problem after a DNS lookup: for an address that another program will connect to."""
        if (problem := self.problem(url)) is not None:
            return problem
        return await self._problem_of_name(_plain_host(urlsplit(url).hostname or ""), UNRESOLVABLE)

    async def check_resolved(self, named: Sequence[tuple[str, str]]) -> None:
        """As `check` for several addresses, each with its field, after their host names were looked up.

        A name that cannot be looked up in time passes: a refusal would let one client with slow names keep out the
        others. `socket_factory` checks the address again when a connection is opened.
        """
        fields: dict[str, str] = {}
        for field, url in named:
            self.check(url, field)
            fields.setdefault(_plain_host(urlsplit(url).hostname or ""), field)
        if len(fields) > MAX_HOSTS:
            field = list(fields.values())[MAX_HOSTS]
            raise Invalid(f"{field}: a message may name {MAX_HOSTS} different hosts, not {len(fields)}", param=field)
        problems = await asyncio.gather(*(self._problem_of_name(host, None) for host in fields))
        for field, problem in zip(fields.values(), problems, strict=True):
            if problem is not None:
                raise Invalid(f"{field}: {problem}", param=field)

    async def _problem_of_name(self, host: str, if_unknown: str | None) -> str | None:
        """Return why clients may not name this host, by the addresses that it resolves to."""
        if self.allows_name(host) or ip_literal(host) is not None:
            return None
        try:
            found = await self.looked_up(host)
        except (OSError, UnicodeError):
            return if_unknown
        is_fine = all(self.permits(_ip_of(info)) for info in found)
        return None if is_fine else f"'{host}' resolves to an address that is not public; {ADVICE}"

    async def looked_up(self, host: str, port: int | None = None) -> list[AddressInfo]:
        """Resolve a host within a few seconds; raises `OSError`."""
        if self._lookups is None:
            self._lookups = ThreadPoolExecutor(MAX_LOOKUPS, "dragoman-lookup")
        find = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        async with asyncio.timeout(LOOKUP_SECONDS):
            return await asyncio.get_running_loop().run_in_executor(self._lookups, find)


class GuardedResolver(AbstractResolver):
    """A resolver for aiohttp within the limits of a policy; its socket factory checks the addresses."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC,
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=info[4][0], port=info[4][1], family=info[0], proto=info[2],
                          flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV)
            for info in await self._addresses.looked_up(host, port) if family in (socket.AF_UNSPEC, info[0])
        ]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def checked_ip(addresses: Addresses, host: str, port: int) -> str:
    """Look a host up and return one of its IP addresses; raises `AddressRefused` if clients may not name all of them.

    Whoever connects to this IP address, also through a proxy, connects to what was checked.
    """
    found = await addresses.looked_up(host, port)
    open_socket = addresses.socket_factory(host)
    for one in found:
        open_socket(one).close()  # raises if a client may not name this address
    return str(min(found, key=lambda info: info[0] is not socket.AF_INET)[4][0])


def _ip_of(info: AddressInfo) -> IP:
    return ip_address(str(info[4][0]).partition("%")[0])


def is_public(address: IP) -> bool:
    """Say whether the address is public: not this machine, not a private or local network, not a group."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not any(address in one for one in _NOT_PUBLIC)
    inner = embedded_ipv4(address)
    return is_public(inner) if inner is not None else address in _PUBLIC_IPV6 and address.is_global


def embedded_ipv4(address: IP) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address contains: mapped, NAT64, 6to4 or Teredo."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


def ip_literal(host: str) -> IP | None:
    """Return the IP address that a host is written as, in any form of resolvers (`127.1`, `0x7f000001`)."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def parse_network(entry: str) -> IPv4Network | IPv6Network | None:
    """Return the network of an entry of `allow` (`10.0.0.0/8`, `127.0.0.1`, `[::1]`); None for a host name."""
    try:
        return ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _plain_host(host: str) -> str:
    """Return the host in lower case, without the final dot, in the characters that a resolver would use."""
    return normalize("NFKC", host).lower().rstrip(".")
