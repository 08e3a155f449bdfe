"""The Socket.IO client of the examiners: the published client where it can serve, raw packets where it cannot."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import aiohttp
import engineio  # type: ignore[import-untyped]
import orjson
import socketio  # type: ignore[import-untyped]
from engineio.payload import Payload  # type: ignore[import-untyped]
from socketio.exceptions import SocketIOError  # type: ignore[import-untyped]

from conformance.kit import expect, websocket
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed, Unanswered
from conformance.kit.http import HttpClient
from conformance.kit.transcript import Transcript
from conformance.kit.wait_limits import Wait, WaitLimits
from conformance.kit.websocket import Socket

PATH = "/socket.io/"
BOTH = ("polling", "websocket")
CLOSING = 0.5
ENDS = ("1", "4")
"""How packets begin that end a connection: whoever reads one waits for those that read and write the connection."""
GARBLED = (LookupError, TypeError, ValueError, AttributeError, OSError, aiohttp.ClientError, SocketIOError)
"""What the library raises where packets are not what it counts on."""
SILENT = logging.Logger("conformance.socketio", logging.CRITICAL + 1)
"""Packets are in the transcript; what the library has to say of them would only disturb the console."""

Payload.max_decode_packets = 10_000  # how much a server tells at once is its own affair; the library hangs up at 17


class Rejected(Failed):
    """The server answered, and would not have the connection."""


@dataclass(frozen=True)
class SocketEvent:
    """One event the server sent, with its first argument."""

    name: str
    body: Any


class _Engine(engineio.AsyncClient):  # type: ignore[misc]
    """The library's engine, except that what its tasks cannot read is told instead of lost."""

    def garbled(self, error: Exception) -> None:
        """Whoever listens puts a function of his own here."""

    def start_background_task(self, target: Callable[..., Awaitable[Any]], *more: Any, **named: Any) -> Any:
        async def guarded() -> Any:
            try:
                return await target(*more, **named)
            except GARBLED as error:
                self.garbled(error)

        return super().start_background_task(guarded)

    async def _trigger_event(self, event: str, *given: Any, **named: Any) -> Any:
        """Packets are read as they come, without a task for each, except those that end a connection."""
        if event != "message" or (isinstance(given[0], str) and given[0].startswith(ENDS)):
            return await super()._trigger_event(event, *given, **named)
        try:
            await self.handlers[event](*given)
        except GARBLED as error:
            self.garbled(error)


class _Client(socketio.AsyncClient):  # type: ignore[misc]
    """The library's client, with that engine."""

    def _engineio_client_class(self) -> type[_Engine]:
        return _Engine


class Link:
    """One Socket.IO connection; everything heard on it is kept in order."""

    def __init__(self, client: HttpClient, io: _Client) -> None:
        self.heard: list[SocketEvent] = []
        self._timeout = client.timeout
        self.waits: WaitLimits = client.waits
        self.departures: Departures = client.departures
        self._io = io
        self._transcript = client.transcript
        self._waiting: asyncio.Queue[SocketEvent | Failed] = asyncio.Queue()
        io.on("*", self._hear)
        io.eio.garbled = self._mishear

    def _mishear(self, error: Exception) -> None:
        """A packet nobody can read comes in its turn, as a failure."""
        said = f"{type(error).__name__}: {error}; what came last: {expect.show(self._transcript.last_answer)}"
        self._waiting.put_nowait(Failed("packets that a Socket.IO client can read", said))

    def _hear(self, name: str, *arguments: Any) -> None:
        heard = SocketEvent(name, arguments[0] if arguments else None)
        self.heard.append(heard)
        self._waiting.put_nowait(heard)

    @property
    def transport(self) -> str:
        return str(self._io.transport())

    @property
    def is_open(self) -> bool:
        return bool(self._io.connected)

    async def emit(self, name: str, body: Any = None) -> None:
        """Send an event and expect no acknowledgement."""
        await self._bounded(self._io.emit(name, body), f"`{name}` to be taken")

    async def call(self, name: str, body: Any, within: float | None = None) -> Any:
        """Send an event and wait for its acknowledgement."""
        what = f"`{name}` to be acknowledged"
        limit = within or self.waits.wait(what, self._timeout).limit
        return await self._bounded(self._io.call(name, body, timeout=limit * 2), what, within)

    async def next(self, within: float | None = None) -> SocketEvent:
        """The next event that was not read yet."""
        heard: SocketEvent | Failed
        if self._waiting.empty():
            heard = await self._bounded(self._waiting.get(), "another event", within)
        else:
            heard = self._waiting.get_nowait()
        if isinstance(heard, Failed):
            raise heard
        return heard

    def forget(self) -> None:
        """Drop what has come and was not read."""
        while not self._waiting.empty():
            self._waiting.get_nowait()

    async def _bounded(self, work: Awaitable[Any], what: str, within: float | None = None) -> Any:
        wait = Wait(within or self._timeout)
        try:
            async with self.waits.bounded(what, self._timeout, within) as wait:
                done = await work
        except (TimeoutError, SocketIOError) as error:
            said = f"nothing came ({error})" if str(error) else "nothing came"
            raise Failed(f"{what} within {wait}", said) from None
        self.waits.came(what)
        return done


@asynccontextmanager
async def connect(
    client: HttpClient,
    auth: Mapping[str, Any] | EllipsisType | None = ...,
    transports: Sequence[str] = BOTH,
) -> AsyncIterator[Link]:
    """Connect to the default namespace, with the client's key as `auth.token` unless another auth is given."""
    io = _Client(
        reconnection=False, handle_sigint=False, http_session=client.session, logger=SILENT, engineio_logger=SILENT
    )
    _record(io.eio, client.transcript)
    reasons: list[Any] = []
    io.on("connect_error", reasons.append)
    link = Link(client, io)
    token = {"token": client.key} if client.key is not None else None
    asking = io.connect(
        client.base,
        auth=dict(auth) if isinstance(auth, Mapping) else None if auth is None else token,
        transports=list(transports),
        wait_timeout=client.timeout,
    )
    try:
        await _opened(asking, client, reasons)
        yield link
    finally:
        await _leave(io)


async def _opened(asking: Awaitable[None], client: HttpClient, reasons: list[Any]) -> None:
    try:
        async with asyncio.timeout(client.timeout + CLOSING):
            await asking
    except (TimeoutError, *GARBLED) as error:
        said = expect.show(reasons[0]) if reasons else _said(error)
        kind = Rejected if client.transcript.has_answer else Unanswered
        raise kind(f"{PATH} to open a Socket.IO connection", said) from None


def _said(error: Exception) -> str:
    """The library's words; where it only lost its footing, what it lost it over."""
    is_lost = isinstance(error, LookupError | TypeError | AttributeError)
    return f"{type(error).__name__}: {error}" if is_lost else str(error) or "nothing came"


async def _leave(io: Any) -> None:
    """Close in good order; a server that does not let go is left behind."""
    reading = io.eio.read_loop_task
    try:
        async with asyncio.timeout(CLOSING):
            await io.disconnect()
    except (TimeoutError, *GARBLED):
        if reading is not None:
            reading.cancel()


def _record(engine: Any, transcript: Transcript) -> None:
    """Write every Engine.IO packet that passes into the transcript."""

    def noting(work: Callable[[Any], Awaitable[None]], note: Callable[[str], None]) -> Callable[[Any], Awaitable[None]]:
        async def noted(packet: Any) -> None:
            note(_text(packet.encode()))
            await work(packet)

        return noted

    engine._receive_packet = noting(engine._receive_packet, transcript.received)
    engine._send_packet = noting(engine._send_packet, transcript.sent)


def _text(packet: str | bytes) -> str:
    return packet if isinstance(packet, str) else f"(binary) {packet.hex(' ')}"


# -- raw packets, well-formed or not -----------------------------------------------------------------------------------


@asynccontextmanager
async def raw(client: HttpClient) -> AsyncIterator[Socket]:
    """A bare Engine.IO WebSocket: the caller sends and reads packets as text."""
    async with websocket.connect(client, f"{PATH}?EIO=4&transport=websocket", key=None) as socket:
        yield socket


async def polled(client: HttpClient, sid: str | None = None, packets: Sequence[str] = ()) -> list[str]:
    """One polling request: POST the packets if there are any, else GET what waits."""
    query = {"EIO": "4", "transport": "polling"} | ({"sid": sid} if sid else {})
    method, body = ("POST", "\x1e".join(packets).encode()) if packets else ("GET", None)
    reply = await client.ask(method, PATH, query=query, body=body, content_type="text/plain;charset=UTF-8", key=None)
    return expect.status(reply, 200).text.split("\x1e")


def packet(kind: str, body: Any = ...) -> str:
    """An Engine.IO message packet of this Socket.IO kind: `packet("2", ["event", {}])`."""
    return f"4{kind}" + (orjson.dumps(body).decode() if body is not ... else "")


def unpacked(text: str, kind: str) -> Any:
    """The JSON value of a packet that must be of this kind: `0` for open, `40` for connected, and so on."""
    expect.that(text.startswith(kind), f"an Engine.IO packet of kind {kind}", text)
    return expect.parsed(text[len(kind) :] or "null", f"the packet of kind {kind}")
