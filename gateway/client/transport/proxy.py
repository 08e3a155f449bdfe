"""The proxy of a company: which servers are reached through it, as the environment says, and how a tunnel is opened.

`HTTPS_PROXY` is for https:// and wss://, `HTTP_PROXY` for http:// and ws://, `NO_PROXY` lists the exceptions; names in
lower case win. A server on this machine is never reached through a proxy.
"""

import asyncio
import os
import re
import socket
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

from yarl import URL

from gateway.client.address_policy import IP, embedded_ipv4, ip_literal, parse_network
from gateway.errors import BackendFailed, ConnectionLost, GatewayError

from .error_messages import status_error

PROXY_VARIABLES = "HTTPS_PROXY", "HTTP_PROXY"
SECURE_SCHEMES = ("https", "wss")
MAX_HEAD_BYTES = 16 * 1024
"""The head of a proxy's answer has at most so many bytes."""
CREDENTIALS_WANTED = 407
_UNKNOWN_USER = frozenset((401, CREDENTIALS_WANTED))
"""Some proxies answer 401 to a wrong password."""
_HEAD_END = b"\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})\b")
_WITH_PORT = re.compile(r"(\[[^\]]+\]|[^:]+):(\d+)")


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy; its user name and password are in `url` and in `headers`, and in no message."""

    url: URL
    variable: str
    """The variable that names it."""

    def __repr__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return str(self.url.origin())

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the proxy itself reads."""
        if self.url.user is None:
            return {}
        who = f"{self.url.user}:{self.url.password or ''}".encode()
        return {"proxy-authorization": f"Basic {b64encode(who).decode()}"}

    def refusal(self, status: int, server: str) -> GatewayError:
        """The error for a status with which the proxy itself answered."""
        if status in _UNKNOWN_USER:
            what = "wants a user name and a password" if self.url.user is None else "refuses its user name and password"
            where = f"give them in {self.variable}, as in http://name:password@host:port"
            return status_error(status, f"the proxy {self.name} {what} ({status}); {where}")
        return status_error(status, f"the proxy {self.name} does not connect to {server} (it answered {status})")


def proxy_for(url: URL, environ: Mapping[str, str] = os.environ) -> Proxy | None:
    """Return the proxy through which this server is reached; None if it is reached directly."""
    variable = PROXY_VARIABLES[url.scheme not in SECURE_SCHEMES]
    if not _value(environ, variable) or is_exempt(url.raw_host or "", url.port or 0, _value(environ, "NO_PROXY")):
        return None
    return named_proxy(variable, environ)


def named_proxy(variable: str, environ: Mapping[str, str] = os.environ) -> Proxy | None:
    """Return the proxy that this variable names; raise `BackendFailed` if what it has is no address of one."""
    given = _value(environ, variable)
    if not given:
        return None
    try:
        found = URL(given if "://" in given else f"http://{given}")
        is_usable = found.scheme == "http" and bool(found.raw_host) and bool(found.port)
    except ValueError:
        is_usable = False
    if not is_usable:
        what = "expected http://host:port; https:// and socks5:// are not supported"
        raise BackendFailed(f"{variable} is not the address of a proxy: {what}")
    return Proxy(found, variable)


def _value(environ: Mapping[str, str], variable: str) -> str:
    return (environ.get(variable.lower()) or environ.get(variable) or "").strip()


# -- exceptions -------------------------------------------------------------------------------------------------------

def is_exempt(host: str, port: int, exceptions: str) -> bool:
    """Say whether this server is on this machine, or an exception: a name or a network, maybe with a port, or `*`."""
    host = host.lower().rstrip(".")
    address = ip_literal(host)
    if address is None:
        is_here = host == "localhost" or host.endswith(".localhost")
    else:
        is_here = (embedded_ipv4(address) or address).is_loopback
    return is_here or any(_covers(entry, host, port, address) for entry in re.split(r"[\s,]+", exceptions) if entry)


def _covers(entry: str, host: str, port: int, address: IP | None) -> bool:
    if entry == "*":
        return True
    if (divided := _WITH_PORT.fullmatch(entry)) is not None:
        entry = divided[1]
        if int(divided[2]) != port:
            return False
    if (network := parse_network(entry)) is not None:
        return address is not None and address in network
    name = entry.lower().removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


# -- tunnels ----------------------------------------------------------------------------------------------------------

async def open_tunnel(line: socket.socket, proxy: Proxy, server: URL) -> None:
    """Let the proxy connect this line to a server; what is sent afterwards goes to the server."""
    host = server.raw_host or ""
    place = f"[{host}]:{server.port}" if ":" in host else f"{host}:{server.port}"
    headers = {"host": place, "user-agent": "dragoman", **proxy.headers}
    lines = [f"CONNECT {place} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    await asyncio.get_running_loop().sock_sendall(line, "\r\n".join(lines).encode() + _HEAD_END)
    head = await _read_head(line, proxy)
    found = _STATUS.match(head)
    if found is None or (200 <= int(found[1]) < 300 and not head.endswith(_HEAD_END)):
        raise BackendFailed(f"the proxy {proxy.name} does not speak HTTP; is that its address?")
    if not 200 <= int(found[1]) < 300:
        raise proxy.refusal(int(found[1]), str(server.origin()))


async def _read_head(line: socket.socket, proxy: Proxy) -> bytes:
    """The head of the proxy's answer, with what came along with it; a server says nothing before it is spoken to."""
    head = b""
    while _HEAD_END not in head and len(head) < MAX_HEAD_BYTES:
        piece = await asyncio.get_running_loop().sock_recv(line, MAX_HEAD_BYTES)
        if not piece:
            raise ConnectionLost(f"the proxy {proxy.name} closed the connection")
        head += piece
    return head
