"""What `dragoman record` wrote, read: what both sides said, in the order in which it crossed the wire."""

import base64
import binascii
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import orjson

from gateway.errors import GatewayError
from gateway.model import exact_json
from gateway.upstream import Decoder, Frame, SseEvent

from .frames import NotAFrame, frames_of, parsed
from .pieces import Answered, AnyPiece, Refused, Sent, Told, Unreadable

VERSION = 1
MOST = 4096
"""So many exchanges may be open at once; of older ones nothing more is expected."""
POLLING = "EIO="
"""In the query of requests that carry packets of Socket.IO."""


class Exchange:
    """One request and what came of it; a socket is one exchange for as long as it is open."""

    __slots__ = ("decoder", "is_polling", "name", "started")

    def __init__(self, told: dict[str, Any]) -> None:
        self.name = f"{told.get('method', '')} {told.get('path', '')}"
        self.is_polling = POLLING in str(told.get("query") or "")
        self.decoder = Decoder()
        self.started = False


class RecordingLines:
    """The lines of one file; those of unknown types say nothing."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._started_at = 0.0
        self._exchanges: dict[int, Exchange] = {}
        self.torn = False

    def take(self, number: int, line: bytes) -> Iterator[AnyPiece]:
        if not line.strip():
            return
        try:
            told = exact_json(line)
        except orjson.JSONDecodeError as error:
            raise Unreadable(number, f"this is not JSON: {error}") from None
        if not isinstance(told, dict):
            raise Unreadable(number, "a line of a recording is an object")
        try:
            yield from self._follow(number, told)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise Unreadable(number, f"this line of type '{told.get('type')}' is not whole: {error}") from None

    def end(self) -> Iterator[AnyPiece]:
        yield from ()

    def _follow(self, number: int, told: dict[str, Any]) -> Iterator[AnyPiece]:
        kind = told.get("type")
        if kind == "recording":
            self._begin(number, told)
        elif kind in STEPS:
            name = int(told["exchange"])
            if kind == "request":
                self._exchanges[name] = Exchange(told)
                if len(self._exchanges) > MOST:
                    del self._exchanges[next(iter(self._exchanges))]
            exchange = self._exchanges.get(name)
            if exchange is not None:
                place = {"line": number, "at": self._started_at + float(told.get("at", 0.0)), "stream": str(name)}
                yield from STEPS[kind](self, exchange, told, place)
                if kind == "end":
                    del self._exchanges[name]

    def _begin(self, number: int, told: dict[str, Any]) -> None:
        if told.get("version") != VERSION:
            raise Unreadable(number, f"this is version {told.get('version')!r} of recordings; {VERSION} is read here")
        if told.get("dialect") != self._dialect:
            raise Unreadable(number, f"this was recorded from '{told.get('dialect')}', not from '{self._dialect}'")
        started = told.get("started")
        self._started_at = datetime.fromisoformat(started).timestamp() if isinstance(started, str) else 0.0

    # -- one kind of line each ------------------------------------------------------------------------------------

    def _request(self, exchange: Exchange, told: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        """A request that changes something and has no body says all it says by its name."""
        names = {str(name).lower(): value for name, value in told.get("headers", [])}
        if told["method"] in ("POST", "DELETE") and "transfer-encoding" not in names and (
                names.get("content-length", "0") == "0"):
            yield Sent(frame=Frame(exchange.name, {}), **place)

    def _event(self, exchange: Exchange, told: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        try:
            events = exchange.decoder.feed(_bytes(told))
        except GatewayError as error:
            raise Unreadable(place["line"], error.message) from None
        for event in events:
            yield Told(frame=_frame(event), connection="" if exchange.started else exchange.name, **place)
            exchange.started = True

    def _frame(self, exchange: Exchange, told: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        if "text" not in told:
            return  # nobody speaks in bytes
        for frame in _frames(str(told["text"]), place["line"]):
            if told.get("from") == "client":
                yield Sent(frame=frame, **place)
            else:
                yield Told(frame=frame, connection="" if exchange.started else exchange.name, **place)
                exchange.started = True

    def _body(self, exchange: Exchange, told: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        if exchange.is_polling and "text" in told:
            for frame in _frames(str(told["text"]), place["line"]):
                yield Told(frame=frame, **place)
        elif "text" in told:
            with suppress(NotAFrame):
                yield Answered(frame=Frame("", parsed(told["text"])), **place)

    def _request_body(self, exchange: Exchange, told: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        if "text" not in told:
            return
        if exchange.is_polling:
            for frame in _frames(str(told["text"]), place["line"]):
                yield Sent(frame=frame, **place)
            return
        with suppress(NotAFrame):  # an upload, a form
            yield Sent(frame=Frame(exchange.name, parsed(told["text"])), **place)

    def _response(self, exchange: Exchange, told: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        if int(told["status"]) >= 400:
            yield Refused(**place)

    def _ended(self, exchange: Exchange, told: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        if told.get("ending") == "refused":
            yield Refused(**place)


STEPS: dict[str, Callable[[RecordingLines, Exchange, dict[str, Any], dict[str, Any]], Iterator[AnyPiece]]] = {
    "request": RecordingLines._request,
    "event": RecordingLines._event,
    "frame": RecordingLines._frame,
    "body": RecordingLines._body,
    "request.body": RecordingLines._request_body,
    "response": RecordingLines._response,
    "end": RecordingLines._ended,
}


def _bytes(told: dict[str, Any]) -> bytes:
    return base64.b64decode(told["base64"]) if "base64" in told else str(told["text"]).encode()


def _frames(text: str, line: int) -> list[Frame]:
    try:
        return frames_of(text)
    except NotAFrame as error:
        raise Unreadable(line, str(error)) from None


def _frame(event: SseEvent) -> Frame:
    """What is no JSON is nothing a hearing wants: the recorder keeps what passed, whatever it was."""
    try:
        return Frame(event.name, parsed(event.data), event.id)
    except NotAFrame:
        return Frame(event.name, {}, event.id)
