"""One server of somebody else's, over HTTP: patient within limits, never led elsewhere, its failures in our words.

For those who reach a server by a WebSocket: the one thing that aiohttp's client is still used for, in our words.
"""

import asyncio
import random
import ssl as tls
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any

import aiohttp
import orjson
from yarl import URL

from gateway.client.redaction import REDACTED, long_secrets
from gateway.errors import (
    BackendFailed,
    ConnectionLost,
    GatewayError,
    Overloaded,
    RateLimited,
    ServerUnreachable,
    TimedOut,
)
from gateway.json_values import read_exact_json
from gateway.ports import Timeouts

from .connection_pool import ConnectionPool
from .error_messages import MAX_QUOTED, UpstreamErrors, os_reason
from .http1_connection import Http1Connection
from .sse_decoder import SseDecoder, SseEvent

MAX_ERROR_BODY_BYTES = 16 * MAX_QUOTED
"""So much of a complaint is read at all."""
MAX_BODY_BYTES = 32 * 1024 * 1024
"""A body that is read whole may have so many bytes."""
EVENT_STREAM = "text/event-stream"
IDEMPOTENT_METHODS = frozenset(("GET", "PUT", "DELETE"))
"""A server that is asked twice in one of these ways has done no more than if it were asked once."""


class HttpClient:
    """A server at one address; make one, use it from many turns, close it once."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, secrets: tuple[str, ...] = (),
        timeouts: Timeouts | None = None, ssl: tls.SSLContext | None = None,
    ) -> None:
        self.url = URL(url)
        self.timeouts = timeouts or Timeouts()
        self._unmistakable = long_secrets(secrets)
        self._complaints = UpstreamErrors(self.name, secrets)
        self._exchange = ConnectionPool(
            self.url, self.name, headers or {}, connect_seconds=self.timeouts.connect, ssl=ssl
        )

    @property
    def name(self) -> str:
        """As it is called in messages: without keys, paths or names of users."""
        return str(self.url.origin())

    async def close(self) -> None:
        self._exchange.close()

    def url_for(self, path: str) -> URL:
        """The address of a path below ours."""
        return self.url.with_path(self.url.path.rstrip("/") + path, keep_query=True) if path else self.url

    # -- asking ---------------------------------------------------------------------------------------------------

    async def json(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The body of one answer; None where there is none. Only a GET is tried more than once."""
        attempts = self.timeouts.attempts if method == "GET" else 1
        for attempt in range(1, attempts + 1):
            try:
                async with self.open(method, path, body, query=query, headers=headers) as wire:
                    return self._parsed(await self._whole(wire), wire.content_type)
            except GatewayError as error:
                await wait_before_retry(error, attempt, attempts)
        raise AssertionError("every attempt returns or raises")

    async def events(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[SseEvent, None]:
        """The server-sent events of one answer; tried again only while nothing has been heard."""
        async with aclosing(self.event_batches(method, path, body, headers=headers, query=query)) as batches:
            async for events in batches:
                for event in events:
                    yield event

    async def event_batches(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[list[SseEvent], None]:
        """The same, those together that came together."""
        wanted, attempts = {"Accept": EVENT_STREAM, **(headers or {})}, self.timeouts.attempts
        for attempt in range(1, attempts + 1):
            heard = False
            try:
                async with self.open(
                    method, path, body, headers=wanted, query=query, again=attempts > 1,
                ) as wire:
                    if wire.content_type != EVENT_STREAM:
                        raise self._complaints.not_events(wire.content_type, await self._beginning(wire))
                    decoder = SseDecoder(name=self.name)
                    while chunk := await wire.read_body():
                        if events := decoder.feed(chunk):
                            heard = True
                            yield self._discreet(events)
                return
            except GatewayError as error:
                if heard:
                    raise
                await wait_before_retry(error, attempt, attempts)

    @asynccontextmanager
    async def open(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None, again: bool = False,
    ) -> AsyncIterator[Http1Connection]:
        """One attempt; what comes is an answer of a status below 300 whose body has not been read.

        `again` is whether it does no harm if the server is asked twice; some methods say so themselves.
        """
        url = self.url_for(path).update_query(query) if query else self.url_for(path)
        patience = self.timeouts
        async with self._exchange.request(
            method, url, body, headers or {}, again=again or method in IDEMPOTENT_METHODS,
            first=patience.first_byte, idle=patience.idle, total=patience.total,
        ) as wire:
            if wire.status >= 300:
                said = await self._beginning(wire) if wire.status >= 400 else b""
                raise self._complaints.from_status(wire.status, wire.headers, said)
            yield wire

    # -- reading --------------------------------------------------------------------------------------------------

    async def _beginning(self, wire: Http1Connection) -> bytes:
        """As much of a complaint as is worth reading, or as comes of it."""
        body = bytearray()
        with suppress(GatewayError):
            while len(body) < MAX_ERROR_BODY_BYTES and (chunk := await wire.read_body()):
                body += chunk
        return bytes(body[:MAX_ERROR_BODY_BYTES])

    async def _whole(self, wire: Http1Connection) -> bytes:
        body = bytearray()
        while chunk := await wire.read_body():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise BackendFailed(f"{self.name} answered with more than {MAX_BODY_BYTES} bytes")
        return bytes(body)

    def _parsed(self, body: bytes, kind: str) -> Any:
        if not body.strip():
            return None
        if any(secret.encode() in body for secret in self._unmistakable):
            body = self._blotted(body.decode(errors="replace")).encode()
        try:
            return read_exact_json(body)
        except orjson.JSONDecodeError:
            raise self._complaints.not_json(kind) from None

    def _discreet(self, events: list[SseEvent]) -> list[SseEvent]:
        """The same without the secrets that cannot be mistaken for anything else."""
        for secret in self._unmistakable:
            if any(secret in event.data for event in events):
                events = [SseEvent(event.name, self._blotted(event.data), event.id) for event in events]
        return events

    def _blotted(self, text: str) -> str:
        """What an upstream says, without the secrets that cannot be mistaken for anything else."""
        for secret in self._unmistakable:
            text = text.replace(secret, REDACTED)
        return text

    def quote(self, body: bytes) -> str:
        """What an upstream says of its failure, in one line, and without our secrets."""
        return self._complaints.quote(body)

    # -- for those who reach the server by a socket ---------------------------------------------------------------

    def aiohttp_errors(self) -> AbstractContextManager[None]:
        """What aiohttp raises stops here."""
        return aiohttp_errors(self.name, self.timeouts.total)

    async def error_of(self, response: aiohttp.ClientResponse) -> GatewayError:
        """What an answer of a status of 300 and above means."""
        said = await read_beginning(response, MAX_ERROR_BODY_BYTES) if response.status >= 400 else b""
        return self._complaints.from_status(response.status, response.headers, said)


@contextmanager
def aiohttp_errors(name: str, total: float) -> Iterator[None]:
    """What aiohttp raises stops here; `name` is who is complained of, `total` how long it was waited for in all."""
    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
        raise BackendFailed(f"{name}: its certificate does not verify ({os_reason(error)})") from None
    except aiohttp.ServerTimeoutError:
        raise TimedOut(f"{name} sent nothing in time") from None
    except aiohttp.ClientConnectorError as error:
        raise ServerUnreachable(f"{name} cannot be reached ({os_reason(error)})") from None
    except aiohttp.InvalidURL as error:
        raise BackendFailed(f"{name} is no address: {error}") from None
    except TimeoutError:
        raise TimedOut(f"{name} took longer than {total:g} seconds in all") from None
    except aiohttp.ClientError as error:
        raise ConnectionLost(f"the connection to {name} broke ({type(error).__name__})") from None


async def read_beginning(response: aiohttp.ClientResponse, most: int) -> bytes:
    """So much of an answer that opened no socket, or as much as comes of it."""
    body = bytearray()
    with suppress(GatewayError), aiohttp_errors("", 0):
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) >= most:
                break
    return bytes(body[:most])


MAX_RETRY_WAIT = 20.0
"""An upstream that wants us to wait longer than this is not tried again."""
RETRYABLE_ERRORS = (ServerUnreachable, ConnectionLost, RateLimited, Overloaded)
"""Failures that may be over in a moment."""


async def wait_before_retry(error: GatewayError, attempt: int, attempts: int) -> None:
    """Until it is time for the next attempt; raises what this one came to where there should be none."""
    wait = (error.details or {}).get("retry_after", random.uniform(0.2, 0.4) * 2 ** attempt)  # noqa: S311  # no secret
    if not isinstance(error, RETRYABLE_ERRORS) or attempt >= attempts or wait > MAX_RETRY_WAIT:
        raise error
    await asyncio.sleep(wait)
