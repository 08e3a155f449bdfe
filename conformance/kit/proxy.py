"""The proxy of a company, as the environment says: examiners reach a server in the same way as other clients.

`HTTPS_PROXY` is for https://, `HTTP_PROXY` for http://, `NO_PROXY` lists the exceptions; names in lower case win. A
server on this machine is never reached through a proxy.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network

from yarl import URL


def proxy_for(url: str | URL, environ: Mapping[str, str] = os.environ) -> URL | None:
    """The proxy through which a server is reached, None if directly; ValueError if the variable names no proxy."""
    server = URL(url)
    variable = "HTTPS_PROXY" if server.scheme in ("https", "wss") else "HTTP_PROXY"
    given = _value(environ, variable)
    if not given or _is_exempt(server, _value(environ, "NO_PROXY")):
        return None
    with suppress(ValueError):
        found = URL(given if "://" in given else f"http://{given}")
        if found.scheme == "http" and found.host and found.port:
            return found
    what = "expected http://host:port; https:// and socks5:// are not supported"
    raise ValueError(f"{variable} is not the address of a proxy: {what}")


def _value(environ: Mapping[str, str], variable: str) -> str:
    return (environ.get(variable.lower()) or environ.get(variable) or "").strip()


def _is_exempt(server: URL, exceptions: str) -> bool:
    host = (server.host or "").lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost") or _is_in("127.0.0.0/8", host) or _is_in("::1", host):
        return True
    for entry in filter(None, re.split(r"[\s,]+", exceptions)):
        name, port = divided.groups() if (divided := re.fullmatch(r"(\[.+\]|[^:]+):(\d+)", entry)) else (entry, None)
        name = name.lower().removeprefix("*").strip(".[]")
        is_covered = _is_in(name, host) or (bool(name) and (host == name or host.endswith(f".{name}")))
        if entry == "*" or (is_covered and port in (None, str(server.port))):
            return True
    return False


def _is_in(network: str, host: str) -> bool:
    """Whether the host is an address of the network; a name is in none."""
    with suppress(ValueError):
        return ip_address(host) in ip_network(network, strict=False)
    return False
