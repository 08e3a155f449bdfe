"""One server of somebody else's, over HTTP: patient within limits, never led elsewhere, its failures in our words."""

import asyncio
import random
import ssl as tls
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from yarl import URL

from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut

from .complaints import QUOTED, Complaints, reason_of
from .exchange import Exchange
from .failures import Cut, Unreachable
from .secrets import BLOT, unmistakable
from .sse import Decoder, SseEvent
from .wire import Wire

READ = 16 * QUOTED
"""So much of it is read at all."""
LARGEST = 32 * 1024 * 1024
"""A body that is read whole may have so many bytes."""
LONGEST_WAIT = 20.0
"""An upstream that wants us to wait longer than this is not tried again."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long an upstream is waited for, in seconds, and how often it is tried before it has said anything.

    `first_byte` is for the beginning of an answer, `idle` for each further piece of it, `total` for one attempt.
    """

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 60.0
    total: float = 600.0
    attempts: int = 3


class Upstream:
    """A server at one address; make one, use it from many turns, close it once."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, secrets: tuple[str, ...] = (),
        patience: Patience | None = None, ssl: tls.SSLContext | None = None,
    ) -> None:
        self.url = URL(url)
        self.patience = patience or Patience()
        self._headers, self._secrets, self._ssl = dict(headers or {}), secrets, ssl
        self._unmistakable = unmistakable(secrets)
        self._complaints = Complaints(self.name, secrets)
        self._session: aiohttp.ClientSession | None = None
        self._exchange = Exchange(
            self.url, self.name, self._headers, connect_seconds=self.patience.connect, ssl=ssl,
        )

    @property
    def name(self) -> str:
        """As it is called in messages: without keys, paths or names of users."""
        return str(self.url.origin())

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=self._ssl or True, keepalive_timeout=30)
            self._session = aiohttp.ClientSession(
                connector=connector, json_serialize=lambda body: orjson.dumps(body).decode(), auto_decompress=True,
                headers=self._headers,
            )
        return self._session

    async def close(self) -> None:
        self._exchange.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def at(self, path: str) -> URL:
        """The address of a path below ours."""
        return self.url.with_path(self.url.path.rstrip("/") + path, keep_query=True) if path else self.url

    # -- asking ---------------------------------------------------------------------------------------------------

    async def json(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The body of one answer; None where there is none. Only a GET is tried more than once."""
        attempts = self.patience.attempts if method == "GET" else 1
        for attempt in range(1, attempts + 1):
            try:
                async with self.opened(method, path, body, query=query, headers=headers) as response:
                    return self._parsed(await self._whole(response))
            except GatewayError as error:
                await self._wait_or_raise(error, attempt, attempts)
        raise AssertionError("every attempt returns or raises")

    async def events(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[SseEvent, None]:
        """The server-sent events of one answer; tried again only while nothing has been heard."""
        async with aclosing(self.batches(method, path, body, headers=headers, query=query)) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def batches(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[list[SseEvent], None]:
        """The same, those together that came together."""
        wanted = {"Accept": "text/event-stream", **(headers or {})}
        url = self.at(path).update_query(query) if query else self.at(path)
        patience, attempts = self.patience, self.patience.attempts
        for attempt in range(1, attempts + 1):
            heard = False
            try:
                async with self._exchange.opened(
                    method, url, body, wanted, first=patience.first_byte, idle=patience.idle, total=patience.total,
                ) as wire:
                    if wire.status >= 300 or _kind(wire) != "text/event-stream":
                        raise await self._no_events(wire)
                    decoder = Decoder(name=self.name)
                    while chunk := await wire.body():
                        if events := decoder.feed(chunk):
                            heard = True
                            yield self._discreet(events)
                return
            except GatewayError as error:
                if heard:
                    raise
                await self._wait_or_raise(error, attempt, attempts)

    def _discreet(self, events: list[SseEvent]) -> list[SseEvent]:
        """The same without the secrets that cannot be mistaken for anything else."""
        for secret in self._unmistakable:
            if any(secret in event.data for event in events):
                events = [SseEvent(event.name, self._blotted(event.data), event.id) for event in events]
        return events

    async def chunks(self, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        """The bytes of an answer as they come, each waited for as long as patience has it."""
        first = True
        with self._border():
            async for chunk in response.content.iter_any():
                if first:
                    first = False
                    self._wait_less(response)
                yield chunk

    def _wait_less(self, response: aiohttp.ClientResponse) -> None:
        """From now on each piece is waited for as long as a pause may last."""
        protocol = response.connection.protocol if response.connection is not None else None
        if protocol is not None:
            protocol.read_timeout = self.patience.idle
            protocol.start_timeout()

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One attempt; what comes is an answer of a status below 300 whose body has not been read."""
        patience = self.patience
        timeout = aiohttp.ClientTimeout(
            total=patience.total, sock_connect=patience.connect, sock_read=patience.first_byte,
        )
        url = self.at(path).update_query(query) if query else self.at(path)
        with self._border():
            response = await self.session.request(
                method, url, json=body, headers=headers, timeout=timeout, allow_redirects=False,
            )
        try:
            if response.status >= 300:
                raise await self._complaint(response)
            yield response
        finally:
            response.close()

    # -- what goes wrong ------------------------------------------------------------------------------------------

    async def _complaint(self, response: aiohttp.ClientResponse) -> GatewayError:
        beginning = await self._beginning(response) if response.status >= 400 else b""
        return self._complaints.refusal(response.status, response.headers, beginning)

    async def _no_events(self, wire: Wire) -> GatewayError:
        """Why an answer is not what was asked for, with as much of it as is worth reading, or as comes of it."""
        body = bytearray()
        if not 300 <= wire.status < 400:
            with suppress(GatewayError):
                while len(body) < READ and (chunk := await wire.body()):
                    body += chunk
        if wire.status >= 300:
            return self._complaints.refusal(wire.status, wire.headers, bytes(body[:READ]))
        return self._complaints.no_events(_kind(wire), bytes(body[:READ]))

    async def _beginning(self, response: aiohttp.ClientResponse) -> bytes:
        """As much of a complaint as is worth reading, or as comes of it."""
        body = bytearray()
        with suppress(GatewayError):
            async with aclosing(self.chunks(response)) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) >= READ:
                        break
        return bytes(body[:READ])

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async with aclosing(self.chunks(response)) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > LARGEST:
                    raise BackendFailed(f"{self.name} answered with more than {LARGEST} bytes")
        return bytes(body)

    def quoted(self, body: bytes) -> str:
        """What an upstream says of its failure, in one line, and without our secrets."""
        return self._complaints.quoted(body)

    def _blotted(self, text: str) -> str:
        """What an upstream says, without the secrets that cannot be mistaken for anything else."""
        for secret in self._unmistakable:
            text = text.replace(secret, BLOT)
        return text

    def _parsed(self, body: bytes) -> Any:
        if not body.strip():
            return None
        if any(secret.encode() in body for secret in self._unmistakable):
            body = self._blotted(body.decode(errors="replace")).encode()
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            raise BackendFailed(f"{self.name} answered with something that is not JSON") from None

    async def _wait_or_raise(self, error: GatewayError, attempt: int, attempts: int) -> None:
        again = isinstance(error, Unreachable | Cut | RateLimited | Overloaded)
        wait = (error.details or {}).get("retry_after", random.uniform(0.2, 0.4) * 2 ** attempt)  # noqa: S311  # no secret
        if not again or attempt >= attempts or wait > LONGEST_WAIT:
            raise error
        await asyncio.sleep(wait)

    @contextmanager
    def _border(self) -> Iterator[None]:
        """What aiohttp raises stops here."""
        try:
            yield
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
            raise BackendFailed(f"{self.name}: its certificate does not verify ({reason_of(error)})") from None
        except aiohttp.ServerTimeoutError:
            raise TimedOut(f"{self.name} took too long: nothing came for a while") from None
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"{self.name} cannot be reached ({reason_of(error)})") from None
        except aiohttp.InvalidURL as error:
            raise BackendFailed(f"{self.name} is no address: {error}") from None
        except TimeoutError:
            raise TimedOut(f"{self.name} took longer than {self.patience.total:g} seconds in all") from None
        except aiohttp.ClientError as error:
            raise Cut(f"the connection to {self.name} broke ({type(error).__name__})") from None

    complaint, border = _complaint, _border
    """The same for those who reach the server by a socket."""


def _kind(wire: Wire) -> str:
    return wire.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()
