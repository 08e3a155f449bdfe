"""One server of somebody else's, over HTTP: patient within limits, never led elsewhere, its failures in our words."""

import ssl as tls
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, suppress
from typing import Any

import aiohttp
import orjson
from yarl import URL

from gateway.errors import BackendFailed, GatewayError
from gateway.model import exact_json

from .complaints import QUOTED, Complaints
from .exchange import Exchange
from .patience import Patience, wait_or_raise
from .secrets import BLOT, unmistakable
from .sockets import beginning, border
from .sse import Decoder, SseEvent
from .wire import Wire

READ = 16 * QUOTED
"""So much of a complaint is read at all."""
LARGEST = 32 * 1024 * 1024
"""A body that is read whole may have so many bytes."""
EVENTS = "text/event-stream"
HARMLESS = frozenset(("GET", "PUT", "DELETE"))
"""A server that is asked twice in one of these ways has done no more than if it were asked once."""


class Upstream:
    """A server at one address; make one, use it from many turns, close it once."""

    def __init__(
        self, url: str, *, headers: Mapping[str, str] | None = None, secrets: tuple[str, ...] = (),
        patience: Patience | None = None, ssl: tls.SSLContext | None = None,
    ) -> None:
        self.url = URL(url)
        self.patience = patience or Patience()
        self._unmistakable = unmistakable(secrets)
        self._complaints = Complaints(self.name, secrets)
        self._exchange = Exchange(self.url, self.name, headers or {}, connect_seconds=self.patience.connect, ssl=ssl)

    @property
    def name(self) -> str:
        """As it is called in messages: without keys, paths or names of users."""
        return str(self.url.origin())

    async def close(self) -> None:
        self._exchange.close()

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
                async with self.attempt(method, path, body, query=query, headers=headers) as wire:
                    return self._parsed(await self._whole(wire), wire.kind)
            except GatewayError as error:
                await wait_or_raise(error, attempt, attempts)
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
        wanted, attempts = {"Accept": EVENTS, **(headers or {})}, self.patience.attempts
        for attempt in range(1, attempts + 1):
            heard = False
            try:
                async with self.attempt(
                    method, path, body, headers=wanted, query=query, again=attempts > 1,
                ) as wire:
                    if wire.kind != EVENTS:
                        raise self._complaints.no_events(wire.kind, await self._beginning(wire))
                    decoder = Decoder(name=self.name)
                    while chunk := await wire.body():
                        if events := decoder.feed(chunk):
                            heard = True
                            yield self._discreet(events)
                return
            except GatewayError as error:
                if heard:
                    raise
                await wait_or_raise(error, attempt, attempts)

    @asynccontextmanager
    async def attempt(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None, again: bool = False,
    ) -> AsyncIterator[Wire]:
        """One attempt; what comes is an answer of a status below 300 whose body has not been read.

        `again` is whether it does no harm if the server is asked twice; some methods say so themselves.
        """
        url = self.at(path).update_query(query) if query else self.at(path)
        patience = self.patience
        async with self._exchange.opened(
            method, url, body, headers or {}, again=again or method in HARMLESS,
            first=patience.first_byte, idle=patience.idle, total=patience.total,
        ) as wire:
            if wire.status >= 300:
                said = await self._beginning(wire) if wire.status >= 400 else b""
                raise self._complaints.refusal(wire.status, wire.headers, said)
            yield wire

    # -- reading --------------------------------------------------------------------------------------------------

    async def _beginning(self, wire: Wire) -> bytes:
        """As much of a complaint as is worth reading, or as comes of it."""
        body = bytearray()
        with suppress(GatewayError):
            while len(body) < READ and (chunk := await wire.body()):
                body += chunk
        return bytes(body[:READ])

    async def _whole(self, wire: Wire) -> bytes:
        body = bytearray()
        while chunk := await wire.body():
            body += chunk
            if len(body) > LARGEST:
                raise BackendFailed(f"{self.name} answered with more than {LARGEST} bytes")
        return bytes(body)

    def _parsed(self, body: bytes, kind: str) -> Any:
        if not body.strip():
            return None
        if any(secret.encode() in body for secret in self._unmistakable):
            body = self._blotted(body.decode(errors="replace")).encode()
        try:
            return exact_json(body)
        except orjson.JSONDecodeError:
            raise self._complaints.no_json(kind) from None

    def _discreet(self, events: list[SseEvent]) -> list[SseEvent]:
        """The same without the secrets that cannot be mistaken for anything else."""
        for secret in self._unmistakable:
            if any(secret in event.data for event in events):
                events = [SseEvent(event.name, self._blotted(event.data), event.id) for event in events]
        return events

    def _blotted(self, text: str) -> str:
        """What an upstream says, without the secrets that cannot be mistaken for anything else."""
        for secret in self._unmistakable:
            text = text.replace(secret, BLOT)
        return text

    def quoted(self, body: bytes) -> str:
        """What an upstream says of its failure, in one line, and without our secrets."""
        return self._complaints.quoted(body)

    # -- for those who reach the server by a socket ---------------------------------------------------------------

    def border(self) -> AbstractContextManager[None]:
        """What aiohttp raises stops here."""
        return border(self.name, self.patience.total)

    async def complaint(self, response: aiohttp.ClientResponse) -> GatewayError:
        """What an answer of a status of 300 and above means."""
        said = await beginning(response, READ) if response.status >= 400 else b""
        return self._complaints.refusal(response.status, response.headers, said)
