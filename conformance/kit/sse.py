"""Server-sent events, inward: bytes in, events out. No clock, no socket."""

import codecs
import re
from dataclasses import dataclass, field

LINE_END = re.compile("\r\n|\r|\n")


@dataclass(frozen=True)
class ServerEvent:
    """One dispatched event of a stream."""

    event: str
    data: str
    id: str = ""
    fields: tuple[str, ...] = field(default=(), compare=False)  # the names of the lines it was made of


class SseParser:
    """Reads the event-stream format of the HTML standard; any split of the bytes gives the same events."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._at_start = True
        self._after_cr = False
        self._event = ""
        self._data: list[str] = []
        self.last_id = ""
        self.retry: int | None = None
        self.comments: list[str] = []
        self._fields: list[str] = []
        self._dropped: tuple[str, ...] = ()

    @property
    def undelivered(self) -> tuple[str, ...]:
        """The names of lines that were meant to be an event, and made none: it has no end yet, or had no data."""
        return tuple(self._fields) if "data" in self._fields else self._dropped

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """The events completed by this piece; an unfinished one waits for its blank line."""
        found: list[ServerEvent] = []
        for line in self._lines(self._decoder.decode(piece)):
            event = self._take(line)
            if event is not None:
                found.append(event)
        return found

    def _lines(self, text: str) -> list[str]:
        """Lines end in CR, LF or CRLF; a CR at the end of a piece may be half of a CRLF."""
        if not text:
            return []
        if self._at_start:
            text = text.removeprefix("\ufeff")
        if self._after_cr:
            text = text.removeprefix("\n")
        self._at_start = False
        self._after_cr = text.endswith("\r")
        first, *others = LINE_END.split(text)
        *lines, self._rest = [self._rest + first, *others]
        return lines

    def _take(self, line: str) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        if line.startswith(":"):
            self.comments.append(line[1:].strip())
            return None
        name, _, value = line.partition(":")
        self._fields.append(name)
        self._set(name, value.removeprefix(" "))
        return None

    def _set(self, name: str, value: str) -> None:
        match name:
            case "event":
                self._event = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self.last_id = value
            case "retry" if value.isascii() and value.isdigit():
                self.retry = int(value)

    def _dispatch(self) -> ServerEvent | None:
        """An event without data is none, as the standard has it."""
        event, data, fields = self._event, self._data, tuple(self._fields)
        self._event, self._data, self._fields = "", [], []
        if "event" in fields and not data:
            self._dropped = fields
        return ServerEvent(event or "message", "\n".join(data), self.last_id, fields) if data else None
