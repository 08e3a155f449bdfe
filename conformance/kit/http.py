"""The HTTP client of the examiners: sends any request, well-formed or not, and keeps a transcript."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import EllipsisType
from typing import Any

import aiohttp
import orjson

from conformance.kit import expect
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed, Unanswered
from conformance.kit.observations import Observations
from conformance.kit.sse import ServerEvent, SseParser
from conformance.kit.transcript import Incoming, Transcript
from conformance.kit.wait_limits import Wait, WaitLimits, route

LARGEST = 8 * 1024 * 1024
LARGE = 256 * 1024
Query = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Reply:
    """A complete answer."""

    asked: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "backslashreplace")

    @property
    def told(self) -> str:
        """The answer in one line."""
        return f"{self.status} {expect.show(self.text)}".strip()

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def json(self) -> Any:
        return expect.parsed(self.body, f"the body of the answer to {self.asked}")

    def has(self, *names: str) -> bool:
        """Whether the answer is a success whose JSON body is an object with these members."""
        if not 200 <= self.status < 300:
            return False
        try:
            body = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return False
        return isinstance(body, dict) and all(name in body for name in names)

    def object(self) -> dict[str, Any]:
        """The JSON object the body must be."""
        return expect.keyed(f"the answer to {self.asked}", self.json())


class Stream:
    """An answer that arrives event by event."""

    def __init__(
        self, asked: str, response: aiohttp.ClientResponse, transcript: Transcript, timeout: float, waits: WaitLimits
    ) -> None:
        self.asked = asked
        self.waits = waits
        self.status = response.status
        self.headers: Mapping[str, str] = dict(response.headers)
        self.parser = SseParser()
        self._response = response
        self._transcript = transcript
        self._incoming = Incoming(transcript, is_whole=not self.is_event_stream)
        self._timeout = timeout
        self._waiting: list[ServerEvent] = []
        self.raw = bytearray()

    @property
    def content_type(self) -> str:
        return self._response.content_type

    @property
    def is_event_stream(self) -> bool:
        return self.status == 200 and self.content_type == "text/event-stream"

    async def next(self, within: float | None = None) -> ServerEvent | None:
        """The next event; None when the server has ended the stream in good order."""
        while not self._waiting:
            piece = await self._piece(within)
            if not piece:
                return None
            self._waiting = self.parser.feed(piece)
        return self._waiting.pop(0)

    async def comment(self, within: float | None = None) -> str:
        """The next comment; events that come before it wait for `next`."""
        seen = len(self.parser.comments)
        async with self._patient(within or self._timeout, "a comment"):
            while len(self.parser.comments) == seen:
                piece = await self._piece(within or self._timeout)
                expect.that(bool(piece), f"{self.asked} to stay open", "the stream ended")
                self._waiting += self.parser.feed(piece)
        return self.parser.comments[seen]

    @asynccontextmanager
    async def _patient(self, within: float, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(within):
                yield
        except TimeoutError:
            raise Failed(f"{what} on {self.asked} within {within:g} s", "none came") from None

    async def whole(self) -> Reply:
        """The rest of the answer as one body, for answers that turn out not to be streams."""
        pieces: list[bytes] = []
        while piece := await self._piece():
            pieces.append(piece)
        return Reply(self.asked, self.status, self.headers, b"".join(pieces))

    def close(self) -> None:
        """Keep in the transcript what arrived of an answer that is not read further."""
        self._incoming.close()

    async def _piece(self, within: float | None = None) -> bytes:
        content, kind = self._response.content, f"the end of {route(self.asked)}"
        wait = Wait(within or self._timeout)
        try:
            piece = content.read_nowait()
            if not piece and not content.is_eof():
                async with self.waits.bounded(kind, self._timeout, within) as wait:
                    piece = await content.readany()
        except TimeoutError:
            if not self.raw and not self.is_event_stream:
                self._transcript.bodiless += 1
                expected = f"the body of the answer to {self.asked} within {wait}"
                raise Unanswered(expected, "only its head came") from None
            raise Failed(f"{self.asked} to go on or end within {wait}", "nothing more came") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Failed(f"the answer to {self.asked} to end in good order", f"it was cut: {_said(error)}") from None
        self.raw += piece
        if len(self.raw) > LARGEST:
            raise Failed(f"the answer to {self.asked} to end", f"more than {LARGEST} bytes")
        if piece:
            self._incoming.feed(piece)
        else:
            self.waits.came(kind)
            self._incoming.close()
        return piece


@dataclass
class HttpClient:
    """Asks one server; every wait is bounded, every byte is in the transcript."""

    session: aiohttp.ClientSession
    base: str
    transcript: Transcript
    key: str | None = None
    timeout: float = 10.0
    headers: dict[str, str] = field(default_factory=dict)
    heed: Callable[[str, str, Reply], None] = lambda method, path, reply: None
    """Called with every complete answer: the cleanup learns here what was created."""
    is_disposable: bool = False
    """Whether things may be left behind on the server."""
    moved: tuple[str, str] | None = None
    """By path of the protocol: the path at which this server has it."""
    waits: WaitLimits = field(default_factory=WaitLimits)
    """The waits that were in vain, of all cases."""
    shared: Observations | None = None

    @property
    def observations(self) -> Observations:
        """Stimuli that are carried out once for several cases; only an examination has them."""
        assert self.shared is not None, "this client belongs to no examination"
        return self.shared

    @cached_property
    def departures(self) -> Departures:
        """Departures from requirements, those of other cases included."""
        return self.shared.departures if self.shared is not None else Departures(self.transcript)

    def placed(self, path: str) -> str:
        """The path at which this server has a path of the protocol."""
        if self.moved is None or not f"{path}/".startswith(f"{self.moved[0]}/"):
            return path
        return self.moved[1] + path[len(self.moved[0]) :]

    async def ask(self, method: str, path: str, json: Any = ..., **more: Any) -> Reply:
        """The complete answer to one request; `stream` describes the arguments."""
        async with self.stream(method, path, json, **more) as stream:
            reply = await stream.whole()
        self.heed(method, path, reply)
        return reply

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        json: Any = ...,
        *,
        body: bytes | None = None,
        content_type: str | None = "application/json",
        query: Query | None = None,
        key: str | EllipsisType | None = ...,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        """Send one request (`json`, or any bytes as `body`) and read its answer as it comes."""
        payload = orjson.dumps(json) if json is not ... else body
        heading = self._heading(content_type if payload is not None else None, self.key if key is ... else key)
        heading |= headers or {}
        path = self.placed(path)
        url = self.base + path
        asked = f"{method} {path}" + _question(query)
        self.transcript.sent_request(asked, heading, None if payload is None else _shown(payload))
        request = self.session.request(
            method,
            url,
            data=_sendable(payload),
            headers=heading,
            params=query,
            allow_redirects=False,
            skip_auto_headers=_BARE,
        )
        kind = f"an answer to {route(asked)}"
        with _answering(asked, self.waits.wait(kind, self.timeout)):
            async with self.waits.bounded(kind, self.timeout):
                response = await request
        self.waits.came(kind)
        try:
            self.transcript.received_head(_status(response), response.headers.items())
            stream = Stream(asked, response, self.transcript, self.timeout, self.waits)
            try:
                yield stream
            finally:
                stream.close()
        finally:
            response.close()

    def _heading(self, content_type: str | None, key: str | None) -> dict[str, str]:
        heading = dict(self.headers)
        if content_type is not None:
            heading["Content-Type"] = content_type
        if key is not None:
            heading["Authorization"] = f"Bearer {key}"
        return heading


_BARE = ("Content-Type",)


@contextmanager
def _answering(asked: str, wait: Wait) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise Unanswered(f"an answer to {asked} within {wait}", "none came") from None
    except (aiohttp.ClientError, OSError) as error:
        raise Unanswered(f"an answer to {asked}", _said(error)) from None


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _sendable(payload: bytes | None) -> bytes | io.BytesIO | None:
    """A large body is sent piece by piece, so that other cases go on meanwhile."""
    return io.BytesIO(payload) if payload is not None and len(payload) > LARGE else payload


def _question(query: Query | None) -> str:
    pairs = query.items() if isinstance(query, Mapping) else query or ()
    return "?" + "&".join(f"{name}={value}" for name, value in pairs) if query else ""


def _shown(payload: bytes) -> str:
    return payload.decode("utf-8", "backslashreplace")


def _status(response: aiohttp.ClientResponse) -> str:
    return f"{response.status} {response.reason or ''}".rstrip()
