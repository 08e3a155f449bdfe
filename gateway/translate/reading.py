"""Recorded streams read as they come: bytes in, pieces out; what kind of recording it is shows in its first line."""

import re
from collections.abc import Iterator
from typing import Protocol

import msgspec
import orjson

from gateway.errors import GatewayError
from gateway.log import FORMAT
from gateway.model import MODEL_VERSION, decode, exact_json
from gateway.upstream import Decoder, Frame, SseEvent

from .frames import NotAFrame, frames_of, parsed
from .pieces import AnyPiece, Kept, Told, Unreadable
from .recordings import RecordingLines

LONGEST = 16 * 1024 * 1024
"""A line of more bytes than this is nobody's to write."""
SSE = re.compile(rb"(event|data|id|retry|)\s*:|(event|data|id|retry)\s*$")
WHAT = ("server-sent events, JSON frames (one a line), packets of Socket.IO, or what `dragoman record` writes")


class Lines(Protocol):
    """One kind of recording, line by line."""

    def take(self, number: int, line: bytes) -> Iterator[AnyPiece]: ...
    def end(self) -> Iterator[AnyPiece]:
        """Nothing follows: what can still be made of the last lines."""
    @property
    def torn(self) -> bool:
        """Whether the last thing was cut off."""


class Reader:
    """Bytes in, pieces out, however the bytes are cut; `Unreadable` names the line that cannot be read."""

    def __init__(self, dialect: str | None) -> None:
        """The dialect that was recorded; None for records of the house's own."""
        self._dialect = dialect
        self._lines: Lines | None = None
        self._buffer = bytearray()
        self._number = 0

    @property
    def is_recognised(self) -> bool:
        """Whether it is known what kind of recording this is."""
        return self._lines is not None

    @property
    def torn(self) -> bool:
        """Whether the recording ends in the middle of something."""
        return self._lines is not None and self._lines.torn

    def feed(self, chunk: bytes) -> Iterator[AnyPiece]:
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._buffer) + lines[0]
            self._buffer.clear()
        self._buffer += rest
        for line in lines:
            yield from self._take(line)
        if len(self._buffer) > LONGEST:
            raise Unreadable(self._number + 1, f"it has more than {LONGEST} bytes")

    def end(self) -> Iterator[AnyPiece]:
        """The last line, if it is whole without its end, and whatever else is complete now."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if rest.strip():
            yield from self._take(rest)
        if self._lines is not None:
            yield from self._lines.end()

    def _take(self, line: bytes) -> Iterator[AnyPiece]:
        self._number += 1
        if self._number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if self._lines is None:
            if not line.strip():
                return
            self._lines = self._recognised(line.strip())
        yield from self._lines.take(self._number, line)

    def _recognised(self, line: bytes) -> Lines:
        if self._dialect is None:
            return RecordLines()
        if SSE.match(line):
            return EventLines()
        if line[:1] in b"{[" or line[:1].isdigit():
            return RecordingLines(self._dialect) if self._is_recording(line) else FrameLines()
        raise Unreadable(self._number, f"this is none of {WHAT}")

    def _is_recording(self, line: bytes) -> bool:
        try:
            said = exact_json(line)
        except orjson.JSONDecodeError:
            return False
        if isinstance(said, dict) and "exchange" in said and "at" in said:
            raise Unreadable(self._number, "this is out of the middle of a recording; its first line is missing")
        return isinstance(said, dict) and said.get("type") == "recording"


class EventLines:
    """Server-sent events, as a program that reads streams has saved them."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._open = False
        self._number = 0
        self.torn = False

    def take(self, number: int, line: bytes) -> Iterator[AnyPiece]:
        self._number = number
        self._open = bool(line.strip()) and (self._open or not line.startswith(b":"))
        try:
            events = self._decoder.feed(line + b"\n")
        except GatewayError as error:
            raise Unreadable(number, error.message) from None
        for event in events:
            yield self._told(event)

    def end(self) -> Iterator[AnyPiece]:
        """Files are often saved without their last empty line; half an event is none."""
        was_open, told = self._open, 0
        for event in self._decoder.feed(b"\n"):
            if event.data.strip():
                yield self._told(event)
                told += 1
        self.torn = was_open and not told

    def _told(self, event: SseEvent) -> Told:
        return Told(line=self._number, frame=frame_of_event(event, self._number))


def frame_of_event(event: SseEvent, line: int) -> Frame:
    """An event's data is JSON in every dialect; a bare mark that says that it is over is not."""
    if not event.data.strip() or event.data.strip() == "[DONE]":
        return Frame(event.name, {}, event.id)
    try:
        return Frame(event.name, parsed(event.data), event.id)
    except NotAFrame:
        raise Unreadable(line, f"the data of the event '{event.name[:40]}' is not JSON") from None


class FrameLines:
    """The frames of a socket, one a line: JSON, or packets of Socket.IO."""

    def __init__(self) -> None:
        self.torn = False

    def take(self, number: int, line: bytes) -> Iterator[AnyPiece]:
        try:
            frames = frames_of(line.decode())
        except UnicodeDecodeError:
            raise Unreadable(number, "this is not UTF-8") from None
        except NotAFrame as error:
            raise Unreadable(number, str(error)) from None
        for frame in frames:
            yield Told(line=number, frame=frame)

    def end(self) -> Iterator[AnyPiece]:
        yield from ()


class RecordLines:
    """Records, as `dragoman log export` and `dragoman replay --json` write them; the first has a line before them."""

    def __init__(self) -> None:
        self.torn = False

    def take(self, number: int, line: bytes) -> Iterator[AnyPiece]:
        if not line.strip() or (number == 1 and self._is_header(line)):
            return
        try:
            record = decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Unreadable(number, f"this is no record: {error}") from None
        yield Kept(line=number, at=record.at, stream=record.session_id, record=record)

    def end(self) -> Iterator[AnyPiece]:
        yield from ()

    def _is_header(self, line: bytes) -> bool:
        try:
            said = exact_json(line)
        except orjson.JSONDecodeError:
            return False
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            return False
        if isinstance(said.get("model"), int) and said["model"] > MODEL_VERSION:
            raise Unreadable(1, f"this was written by a newer Dragoman (model {said['model']}, this one knows "
                                f"{MODEL_VERSION}); install that one")
        return True
