"""Reads the files of `dragoman record`: the frames of both sides, in the order in which they were sent."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import TypedDict

import orjson
from msgspec import Struct, ValidationError, convert, field

import gateway.model as m
from gateway.client import SseDecoder, SseEvent
from gateway.errors import GatewayError, Invalid
from gateway.json_values import JsonObject, read_exact_json
from gateway.ports import ParsedFrame

PACKET = re.compile(r"42(?:/[^,\[]*,)?\d*(?=\[)")
"""The beginning of a Socket.IO event: its kind, an optional namespace, and an optional number for the ack."""
CONTROL_PACKET = re.compile(r"[0-6].*", re.DOTALL)
"""The other packets of such a connection: connects, pings, acks, disconnects."""
SEPARATOR = "\x1e"
"""The separator of packets in one response."""
ENVELOPE_FIELDS = frozenset(("event", "data", "id"))


class InvalidFrame(Exception):
    """The text is not a frame of any dialect."""


def parse_frames(text: str) -> list[ParsedFrame]:
    """The frames in one text; empty for packets that only keep a connection open."""
    return [frame for packet in text.split(SEPARATOR) if (frame := _parse_packet(packet.strip())) is not None]


def _parse_packet(text: str) -> ParsedFrame | None:
    if not text:
        return None
    packet = PACKET.match(text)
    if packet is not None:
        return to_frame(parse_json(text[packet.end():]))
    if text[0] not in "{[" and CONTROL_PACKET.fullmatch(text):
        return None
    return to_frame(parse_json(text))


def to_frame(value: object) -> ParsedFrame:
    """A frame with its name: `["name", body]`, `{"event": name, "data": body}`, or an object that contains its name."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        return ParsedFrame(value[0], value[1] if len(value) > 1 else None)
    if not isinstance(value, dict):
        raise InvalidFrame("this is not a frame: it is neither an object nor an event of Socket.IO")
    name = value.get("event", value.get("type"))
    if isinstance(name, str) and "data" in value and "event" in value and value.keys() <= ENVELOPE_FIELDS:
        return ParsedFrame(name, value["data"], str(value.get("id") or ""))
    return ParsedFrame(name if isinstance(name, str) else "", value)


def parse_json(text: str | bytes) -> object:
    try:
        return read_exact_json(text)
    except orjson.JSONDecodeError as error:
        raise InvalidFrame(f"this is not JSON: {error}") from None


class RecordedItem(Struct, frozen=True, kw_only=True):
    """An item of a recording: its line, its time if known, and its stream."""

    line: int
    at: float | None = None
    stream: str = ""


class ServerFrame(RecordedItem, frozen=True, kw_only=True):
    """A frame of the server."""

    frame: ParsedFrame
    connection: str = ""
    """The name of the connection that begins here; it may repeat frames of an earlier connection of that name."""


class ClientFrame(RecordedItem, frozen=True, kw_only=True):
    """A frame of the client on a socket, or the body of a request, which is named `METHOD /path`."""

    frame: ParsedFrame


class ResponseBody(RecordedItem, frozen=True, kw_only=True):
    """The body of a response that is not a stream; it shows at least which session the stream belongs to."""

    frame: ParsedFrame


class RejectedRequest(RecordedItem, frozen=True, kw_only=True):
    """The server has rejected the client's last frame of this stream."""


class StoredRecord(RecordedItem, frozen=True, kw_only=True):
    """A record of a log."""

    record: m.Record


AnyRecordedItem = ServerFrame | ClientFrame | ResponseBody | RejectedRequest | StoredRecord


class UnreadableRecording(Invalid):
    """The recording cannot be read from this line on."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")


VERSION = 1
MAX_EXCHANGES = 4096
"""So many exchanges may be open at once; the oldest is dropped."""
POLLING_QUERY = "EIO="
"""A query parameter of requests that carry packets of Socket.IO."""


class RecordedLine(Struct, frozen=True, kw_only=True):
    """One line about an exchange; which fields it has depends on its type."""

    type: str
    exchange: int
    at: float = 0.0
    method: str = ""
    path: str = ""
    query: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    sender: str | None = field(default=None, name="from")
    text: str | None = None
    base64: str | None = None
    status: int = 0
    ending: str | None = None


class LinePlace(TypedDict):
    """The line, the time and the stream of an item."""

    line: int
    at: float
    stream: str


class RecordedExchange:
    """One request and its response; a socket is one exchange for as long as it is open."""

    __slots__ = ("decoder", "is_polling", "name", "started")

    def __init__(self, line: RecordedLine) -> None:
        self.name = f"{line.method} {line.path}"
        self.is_polling = POLLING_QUERY in (line.query or "")
        self.decoder = SseDecoder()
        self.started = False


class RecordingParser:
    """Reads the lines of one file; lines of unknown types are ignored."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._started_at = 0.0
        self._exchanges: dict[int, RecordedExchange] = {}
        self.torn = False

    def take(self, number: int, line: bytes) -> Iterator[AnyRecordedItem]:
        if not line.strip():
            return
        try:
            entry = read_exact_json(line)
        except orjson.JSONDecodeError as error:
            raise UnreadableRecording(number, f"this is not JSON: {error}") from None
        if not isinstance(entry, dict):
            raise UnreadableRecording(number, "a line of a recording is an object")
        try:
            yield from self._follow(number, entry)
        except (ValidationError, ValueError, binascii.Error) as error:
            why = f"this line of type '{entry.get('type')}' is not whole: {error}"
            raise UnreadableRecording(number, why) from None

    def end(self) -> Iterator[AnyRecordedItem]:
        yield from ()

    def _follow(self, number: int, entry: JsonObject) -> Iterator[AnyRecordedItem]:
        kind = entry.get("type")
        if kind == "recording":
            self._begin(number, entry)
        elif isinstance(kind, str) and kind in LINE_HANDLERS:
            line = convert(entry, RecordedLine, strict=False)
            if kind == "request":
                self._exchanges[line.exchange] = RecordedExchange(line)
                if len(self._exchanges) > MAX_EXCHANGES:
                    del self._exchanges[next(iter(self._exchanges))]
            exchange = self._exchanges.get(line.exchange)
            if exchange is not None:
                place = LinePlace(line=number, at=self._started_at + line.at, stream=str(line.exchange))
                yield from LINE_HANDLERS[kind](self, exchange, line, place)
                if kind == "end":
                    del self._exchanges[line.exchange]

    def _begin(self, number: int, entry: JsonObject) -> None:
        if entry.get("version") != VERSION:
            raise UnreadableRecording(
                number, f"this is version {entry.get('version')!r} of recordings; {VERSION} is read here"
            )
        if entry.get("dialect") != self._dialect:
            raise UnreadableRecording(
                number, f"this was recorded from '{entry.get('dialect')}', not from '{self._dialect}'"
            )
        started = entry.get("started")
        self._started_at = datetime.fromisoformat(started).timestamp() if isinstance(started, str) else 0.0

    # -- one kind of line each ------------------------------------------------------------------------------------

    def _request(
        self, exchange: RecordedExchange, line: RecordedLine, place: LinePlace
    ) -> Iterator[AnyRecordedItem]:
        """A request that changes something and has no body is a frame with a name only."""
        headers = {name.lower(): value for name, value in line.headers}
        if line.method in ("POST", "DELETE") and "transfer-encoding" not in headers and (
                headers.get("content-length", "0") == "0"):
            yield ClientFrame(frame=ParsedFrame(exchange.name, {}), **place)

    def _event(self, exchange: RecordedExchange, line: RecordedLine, place: LinePlace) -> Iterator[AnyRecordedItem]:
        if line.text is None and line.base64 is None:
            raise ValueError("there is neither 'text' nor 'base64'")
        data = (line.text or "").encode() if line.base64 is None else base64.b64decode(line.base64)
        try:
            events = exchange.decoder.feed(data)
        except GatewayError as error:
            raise UnreadableRecording(place["line"], error.message) from None
        for event in events:
            yield ServerFrame(frame=_frame(event), connection="" if exchange.started else exchange.name, **place)
            exchange.started = True

    def _frame(self, exchange: RecordedExchange, line: RecordedLine, place: LinePlace) -> Iterator[AnyRecordedItem]:
        if line.text is None:
            return  # no dialect uses binary frames
        for frame in _frames(line.text, place["line"]):
            if line.sender == "client":
                yield ClientFrame(frame=frame, **place)
            else:
                yield ServerFrame(frame=frame, connection="" if exchange.started else exchange.name, **place)
                exchange.started = True

    def _body(self, exchange: RecordedExchange, line: RecordedLine, place: LinePlace) -> Iterator[AnyRecordedItem]:
        if line.text is None:
            return
        if exchange.is_polling:
            for frame in _frames(line.text, place["line"]):
                yield ServerFrame(frame=frame, **place)
            return
        with suppress(InvalidFrame):
            yield ResponseBody(frame=ParsedFrame("", parse_json(line.text)), **place)

    def _request_body(
        self, exchange: RecordedExchange, line: RecordedLine, place: LinePlace
    ) -> Iterator[AnyRecordedItem]:
        if line.text is None:
            return
        if exchange.is_polling:
            for frame in _frames(line.text, place["line"]):
                yield ClientFrame(frame=frame, **place)
            return
        with suppress(InvalidFrame):  # an upload or a form
            yield ClientFrame(frame=ParsedFrame(exchange.name, parse_json(line.text)), **place)

    def _response(
        self, exchange: RecordedExchange, line: RecordedLine, place: LinePlace
    ) -> Iterator[AnyRecordedItem]:
        if line.status >= 400:
            yield RejectedRequest(**place)

    def _ended(self, exchange: RecordedExchange, line: RecordedLine, place: LinePlace) -> Iterator[AnyRecordedItem]:
        if line.ending == "refused":
            yield RejectedRequest(**place)


LINE_HANDLERS: dict[
    str, Callable[[RecordingParser, RecordedExchange, RecordedLine, LinePlace], Iterator[AnyRecordedItem]]
] = {
    "request": RecordingParser._request,
    "event": RecordingParser._event,
    "frame": RecordingParser._frame,
    "body": RecordingParser._body,
    "request.body": RecordingParser._request_body,
    "response": RecordingParser._response,
    "end": RecordingParser._ended,
}


def _frames(text: str, line: int) -> list[ParsedFrame]:
    try:
        return parse_frames(text)
    except InvalidFrame as error:
        raise UnreadableRecording(line, str(error)) from None


def _frame(event: SseEvent) -> ParsedFrame:
    """A body that is no JSON is ignored: the recorder keeps everything that passed."""
    try:
        return ParsedFrame(event.name, parse_json(event.data), event.id)
    except InvalidFrame:
        return ParsedFrame(event.name, {}, event.id)
