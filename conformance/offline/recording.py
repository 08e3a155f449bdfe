"""Recordings: recorded traffic in one neutral form, whatever file format it came from."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote

import orjson
from multidict import CIMultiDict

from conformance.kit import expect
from conformance.kit.http import Reply
from conformance.kit.sse import ServerEvent, SseParser

SHOWN = 4_000


class Unusable(Exception):
    """The file cannot be judged; the words say why, where, and what to do."""


class Ending(StrEnum):
    """How an exchange ended, as far as the recording tells."""

    WHOLE = "whole"
    CUT = "cut"  # the server broke off
    LEFT = "left"  # the client went away
    REFUSED = "refused"  # the server was not there
    OPEN = "open"  # the recording stops before it did


@dataclass(frozen=True)
class Piece:
    """A piece of an answer's body, where it stands and when it came; `order` counts everything in the recording."""

    place: str
    order: int
    at: float
    data: bytes


@dataclass(frozen=True)
class Frame:
    """One frame of a WebSocket."""

    place: str
    order: int
    at: float
    is_sent: bool
    text: str | None


@dataclass(frozen=True)
class RecordedEvent:
    """One server-sent event, where it stands and when it was complete."""

    place: str
    order: int
    at: float
    event: ServerEvent


@dataclass(frozen=True)
class Comment:
    """A comment of an event stream."""

    order: int
    at: float
    text: str


@dataclass
class Exchange:
    """One request and all of its answer."""

    number: int
    place: str
    order: int
    at: float
    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=CIMultiDict)
    body: bytes | None = None
    status: int | None = None
    reply_headers: Mapping[str, str] = field(default_factory=CIMultiDict)
    pieces: list[Piece] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    answered: int = 0  # the order of the answer's head
    ended: int = 0  # the order of its end; 0 while it is open
    ending: Ending = Ending.OPEN
    is_short: bool = False  # bodies too large for the recording are cut short in it
    close_code: int | None = None

    @property
    def asked(self) -> str:
        """The request in one line."""
        shown = "&".join(f"{name}={value}" for name, value in self.query)
        return f"{self.method} {self.path}" + (f"?{shown}" if shown else "")

    @property
    def content_type(self) -> str:
        return self.reply_headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def is_stream(self) -> bool:
        return self.content_type == "text/event-stream"

    @property
    def is_socket(self) -> bool:
        return self.status == 101 or bool(self.frames)

    @property
    def is_whole(self) -> bool:
        """Whether the answer is there from its first byte to its last."""
        return self.status is not None and self.ending is Ending.WHOLE and not self.is_short

    @cached_property
    def reply(self) -> Reply:
        """The answer as the cases know it."""
        data = b"".join(piece.data for piece in self.pieces)
        return Reply(self.asked, self.status or 0, self.reply_headers, data)

    @cached_property
    def sent(self) -> Any:
        """The JSON that the client sent; None if its body is no JSON."""
        try:
            return orjson.loads(self.body or b"null")
        except orjson.JSONDecodeError:
            return None

    def param(self, name: str) -> str | None:
        return next((value for found, value in self.query if found == name), None)

    @property
    def is_done(self) -> bool:
        return self.is_whole and 200 <= (self.status or 0) < 300

    @property
    def is_refused(self) -> bool:
        return 400 <= (self.status or 0) < 500

    @cached_property
    def json(self) -> Any:
        """The JSON that the server answered; None if the body is no JSON."""
        try:
            return orjson.loads(self.reply.body or b"null")
        except orjson.JSONDecodeError:
            return None

    @cached_property
    def _heard(self) -> tuple[list[RecordedEvent], list[Comment]]:
        parser, told, comments = SseParser(), [], []
        for piece in self.pieces:
            before = len(parser.comments)
            told += [RecordedEvent(piece.place, piece.order, piece.at, event) for event in parser.feed(piece.data)]
            comments += [Comment(piece.order, piece.at, text) for text in parser.comments[before:]]
        return told, comments

    @property
    def events(self) -> list[RecordedEvent]:
        """The events of a stream."""
        return self._heard[0]

    @property
    def comments(self) -> list[Comment]:
        return self._heard[1]

    @property
    def shown(self) -> str:
        """The exchange as text for people, shortened."""
        lines = [f"{self.place}", f"> {self.asked}"]
        if self.body:
            lines.append("> " + expect.show(self.body.decode("utf-8", "backslashreplace")))
        lines.append(f"< {self.status or 'no answer'} {self.content_type}".rstrip())
        text = "".join(piece.data.decode("utf-8", "backslashreplace") for piece in self.pieces)
        lines += [f"< {line}" for line in text[:SHOWN].splitlines()]
        lines += [f"{'>' if frame.is_sent else '<'} {frame.text or '(binary)'}" for frame in self.frames[:60]]
        return "\n".join(lines)


@dataclass
class Recording:
    """A whole recording, its exchanges in the order of their requests."""

    source: str
    exchanges: list[Exchange]
    dialect: str | None = None
    mount: str | None = None
    remarks: list[str] = field(default_factory=list)
    _found: dict[str, list[tuple[Exchange, tuple[str, ...]]]] = field(default_factory=dict, repr=False)

    def of(self, route: str) -> list[tuple[Exchange, tuple[str, ...]]]:
        """The exchanges of a route such as `GET /sessions/{}`, each with the values of its path parameters."""
        if route not in self._found:
            self._found[route] = self._look_for(route)
        return self._found[route]

    @cached_property
    def _by_depth(self) -> dict[tuple[str, int], list[Exchange]]:
        """The exchanges by method and number of path segments, so that few are compared with a route."""
        found: dict[tuple[str, int], list[Exchange]] = {}
        for item in self.exchanges:
            found.setdefault((item.method, _depth(item.path)), []).append(item)
        return found

    def _look_for(self, route: str) -> list[tuple[Exchange, tuple[str, ...]]]:
        method, _, path = route.partition(" ")
        pattern = re.compile(re.escape(path).replace(r"\{\}", "([^/]+)") + "/?$")
        matched = ((item, pattern.match(item.path)) for item in self._by_depth.get((method, _depth(path)), ()))
        return [(item, tuple(map(unquote, found.groups()))) for item, found in matched if found]


def _depth(path: str) -> int:
    return path.rstrip("/").count("/")


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty object: another rule judges the shape."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; nothing if the value is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def pairs(query: str) -> tuple[tuple[str, str], ...]:
    """The names and values of a query string."""
    return tuple(parse_qsl(query, keep_blank_values=True))
