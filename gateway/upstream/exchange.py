"""The wires to one server: opened when they are needed, used again, and closed when nobody has for a while."""

import asyncio
import socket
import ssl as tls
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohappyeyeballs import start_connection
from yarl import URL

from gateway.errors import BackendFailed, TimedOut

from .complaints import reason_of
from .failures import Cut, Unreachable
from .wire import Wire

REST_SECONDS = 30.0
"""A connection that nobody has used for so long is closed."""
NEXT_SECONDS = 0.25
"""If the first of a server's addresses has not answered by then the next is tried beside it."""
_UNFIT = frozenset("\r\n\0")


class Exchange:
    """Requests to one server, each on a wire of its own for as long as it takes."""

    def __init__(
        self, url: URL, name: str, headers: Mapping[str, str], *, connect_seconds: float, ssl: tls.SSLContext | None,
    ) -> None:
        self._url, self._name, self._connect_seconds = url, name, connect_seconds
        self._headers = {**_usual(url), **_lower(headers)}
        self._ssl = ssl
        self._resting: list[Wire] = []

    @asynccontextmanager
    async def opened(
        self, method: str, url: URL, body: Any, headers: Mapping[str, str], *, first: float, idle: float,
        total: float,
    ) -> AsyncIterator[Wire]:
        """One answer, up to where its body begins."""
        request = self._request(method, url, body, headers)
        while True:
            wire, is_used = await self._wire()
            try:
                wire.ask(request, first=first, idle=idle, total=total)
                try:
                    await wire.head()
                except Cut:
                    if is_used and not wire.heard:
                        continue  # the server had closed it before it was asked
                    raise
                yield wire
                return
            finally:
                wire.leave()

    def close(self) -> None:
        resting, self._resting = self._resting, []
        for wire in resting:
            wire.close()

    # -- wires ----------------------------------------------------------------------------------------------------

    async def _wire(self) -> tuple[Wire, bool]:
        """One at rest, or a new one; and whether it was used before."""
        while self._resting:
            wire = self._resting.pop()
            if wire.is_open:
                return wire, True
        return await self._connect(), False

    def _rest(self, wire: Wire) -> None:
        wire.expiry = asyncio.get_running_loop().call_later(REST_SECONDS, self._expire, wire)
        self._resting.append(wire)

    def _expire(self, wire: Wire) -> None:
        wire.close()
        self._resting = [other for other in self._resting if other.is_open]

    async def _connect(self) -> Wire:
        loop, host = asyncio.get_running_loop(), self._url.raw_host
        secure = self._context() if self._url.scheme == "https" else None
        try:
            async with asyncio.timeout(self._connect_seconds):
                places = await loop.getaddrinfo(host, self._url.port, type=socket.SOCK_STREAM)
                reached = await start_connection(places, happy_eyeballs_delay=NEXT_SECONDS)
                _, wire = await loop.create_connection(
                    lambda: Wire(self._name, loop, self._rest), sock=reached, ssl=secure,
                    server_hostname=host if secure else None,
                )
        except TimeoutError:
            why = f"{self._name} took too long: no connection within {self._connect_seconds:g} seconds"
            raise TimedOut(why) from None
        except tls.SSLCertVerificationError as error:
            raise BackendFailed(f"{self._name}: its certificate does not verify ({reason_of(error)})") from None
        except tls.SSLError as error:
            raise BackendFailed(f"{self._name} speaks no TLS that we understand ({error.reason})") from None
        except OSError as error:
            raise Unreachable(f"{self._name} cannot be reached ({reason_of(error)})") from None
        return wire

    def _context(self) -> tls.SSLContext:
        if self._ssl is None:
            self._ssl = tls.create_default_context()
        return self._ssl

    # -- requests -------------------------------------------------------------------------------------------------

    def _request(self, method: str, url: URL, body: Any, headers: Mapping[str, str]) -> bytes:
        payload = b"" if body is None else orjson.dumps(body)
        all_headers = self._headers | _lower(headers)
        if body is not None:
            all_headers |= {"content-type": "application/json", "content-length": str(len(payload))}
        head = "".join([f"{name}: {value}\r\n" for name, value in all_headers.items()])
        return f"{method} {url.raw_path_qs} HTTP/1.1\r\n{head}\r\n".encode() + payload


def _usual(url: URL) -> dict[str, str]:
    raw_host = url.raw_host or ""
    host = f"[{raw_host}]" if ":" in raw_host else raw_host
    headers = {
        "host": host if url.is_default_port() else f"{host}:{url.port}",
        "accept": "*/*", "accept-encoding": "identity", "user-agent": "dragoman",
    }
    if url.user is not None:
        who = f"{url.user}:{url.password or ''}".encode()
        headers["authorization"] = f"Basic {b64encode(who).decode()}"
    return headers


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if _UNFIT & {*name, *value}:
            raise BackendFailed(f"the header '{name.strip()}' has a line break in it, or worse")
    return {name.lower(): value for name, value in headers.items()}
