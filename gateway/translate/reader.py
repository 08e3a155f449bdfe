"""Reads recorded streams: bytes in, recorded items out; the first line shows the kind of the recording."""

import re
from collections.abc import Iterator
from typing import Protocol

import msgspec
import orjson

import gateway.model as m
from gateway.client import SseDecoder, SseEvent
from gateway.errors import GatewayError
from gateway.json_values import read_exact_json
from gateway.ports import ParsedFrame
from gateway.storage.log import EXPORT_FORMAT

from .recording_format import (
    AnyRecordedItem,
    InvalidFrame,
    RecordingParser,
    ServerFrame,
    StoredRecord,
    UnreadableRecording,
    parse_frames,
    parse_json,
)

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A line has at most so many bytes."""
SSE_LINE = re.compile(rb"(event|data|id|retry|)\s*:|(event|data|id|retry)\s*$")
KNOWN_FORMATS = ("server-sent events, JSON frames (one a line), packets of Socket.IO, or what `dragoman record` writes")


class LineParser(Protocol):
    """Reads one kind of recording, line by line."""

    def take(self, number: int, line: bytes) -> Iterator[AnyRecordedItem]: ...
    def end(self) -> Iterator[AnyRecordedItem]:
        """The recording has ended: the items in the last lines."""
    @property
    def torn(self) -> bool:
        """Whether the last item was cut."""


class RecordingReader:
    """Bytes in, items out, wherever the bytes are cut; `UnreadableRecording` has the line that cannot be read."""

    def __init__(self, dialect: str | None) -> None:
        """The dialect of the recording; None for canonical records."""
        self._dialect = dialect
        self._lines: LineParser | None = None
        self._buffer = bytearray()
        self._number = 0

    @property
    def is_recognised(self) -> bool:
        """Whether the kind of the recording is known."""
        return self._lines is not None

    @property
    def torn(self) -> bool:
        """Whether the recording ends in the middle of an item."""
        return self._lines is not None and self._lines.torn

    def feed(self, chunk: bytes) -> Iterator[AnyRecordedItem]:
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._buffer) + lines[0]
            self._buffer.clear()
        self._buffer += rest
        for line in lines:
            yield from self._take(line)
        if len(self._buffer) > MAX_LINE_BYTES:
            raise UnreadableRecording(self._number + 1, f"it has more than {MAX_LINE_BYTES} bytes")

    def end(self) -> Iterator[AnyRecordedItem]:
        """The last line, if it is complete without a line end, and all other items that are complete now."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if rest.strip():
            yield from self._take(rest)
        if self._lines is not None:
            yield from self._lines.end()

    def _take(self, line: bytes) -> Iterator[AnyRecordedItem]:
        self._number += 1
        if self._number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if self._lines is None:
            if not line.strip():
                return
            self._lines = self._recognised(line.strip())
        yield from self._lines.take(self._number, line)

    def _recognised(self, line: bytes) -> LineParser:
        if self._dialect is None:
            return RecordParser()
        if SSE_LINE.match(line):
            return SseParser()
        if line[:1] in b"{[" or line[:1].isdigit():
            return RecordingParser(self._dialect) if self._is_recording(line) else FrameParser()
        raise UnreadableRecording(self._number, f"this is none of {KNOWN_FORMATS}")

    def _is_recording(self, line: bytes) -> bool:
        try:
            header = read_exact_json(line)
        except orjson.JSONDecodeError:
            return False
        if isinstance(header, dict) and "exchange" in header and "at" in header:
            raise UnreadableRecording(
                self._number, "the first line of the recording is missing; translate the complete recording"
            )
        return isinstance(header, dict) and header.get("type") == "recording"


class SseParser:
    """Server-sent events, as a client has saved them."""

    def __init__(self) -> None:
        self._decoder = SseDecoder()
        self._open = False
        self._number = 0
        self.torn = False

    def take(self, number: int, line: bytes) -> Iterator[AnyRecordedItem]:
        self._number = number
        self._open = bool(line.strip()) and (self._open or not line.startswith(b":"))
        try:
            events = self._decoder.feed(line + b"\n")
        except GatewayError as error:
            raise UnreadableRecording(number, error.message) from None
        for event in events:
            yield self._frame(event)

    def end(self) -> Iterator[AnyRecordedItem]:
        """Files often lack their last empty line; half an event is ignored."""
        was_open, count = self._open, 0
        for event in self._decoder.feed(b"\n"):
            if event.data.strip():
                yield self._frame(event)
                count += 1
        self.torn = was_open and not count

    def _frame(self, event: SseEvent) -> ServerFrame:
        return ServerFrame(line=self._number, frame=frame_of_event(event, self._number))


def frame_of_event(event: SseEvent, line: int) -> ParsedFrame:
    """An event's data is JSON in every dialect, except for a bare end mark."""
    if not event.data.strip() or event.data.strip() == "[DONE]":
        return ParsedFrame(event.name, {}, event.id)
    try:
        return ParsedFrame(event.name, parse_json(event.data), event.id)
    except InvalidFrame:
        raise UnreadableRecording(line, f"the data of the event '{event.name[:40]}' is not JSON") from None


class FrameParser:
    """The frames of a socket, one per line: JSON, or packets of Socket.IO."""

    def __init__(self) -> None:
        self.torn = False

    def take(self, number: int, line: bytes) -> Iterator[AnyRecordedItem]:
        try:
            frames = parse_frames(line.decode())
        except UnicodeDecodeError:
            raise UnreadableRecording(number, "this is not UTF-8") from None
        except InvalidFrame as error:
            raise UnreadableRecording(number, str(error)) from None
        for frame in frames:
            yield ServerFrame(line=number, frame=frame)

    def end(self) -> Iterator[AnyRecordedItem]:
        yield from ()


class RecordParser:
    """Records as `dragoman log export` and `dragoman replay --json` write them; the former begin with a header."""

    def __init__(self) -> None:
        self.torn = False

    def take(self, number: int, line: bytes) -> Iterator[AnyRecordedItem]:
        if not line.strip() or (number == 1 and self._is_header(line)):
            return
        try:
            record = m.decode_record(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UnreadableRecording(number, f"this is not a record: {error}") from None
        yield StoredRecord(line=number, at=record.at, stream=record.session_id, record=record)

    def end(self) -> Iterator[AnyRecordedItem]:
        yield from ()

    def _is_header(self, line: bytes) -> bool:
        try:
            header = read_exact_json(line)
        except orjson.JSONDecodeError:
            return False
        if not isinstance(header, dict) or header.get("format") != EXPORT_FORMAT:
            return False
        if isinstance(header.get("model"), int) and header["model"] > m.MODEL_VERSION:
            raise UnreadableRecording(
                1, f"this was written by a newer Dragoman (model {header['model']}, this one knows {m.MODEL_VERSION}); "
                "install that one")
        return True
