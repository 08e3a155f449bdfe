"""A parser of server-sent events: bytes in, complete events out, wherever the bytes were cut."""

from msgspec import Struct

from gateway.errors import BackendFailed

BYTE_ORDER_MARK = "\ufeff".encode()
"""Some servers send it before the first event."""
MAX_EVENT_BYTES = 16 * 1024 * 1024
"""An event has at most so many bytes."""


class SseEvent(Struct, frozen=True, gc=False):
    """One event: its name ("message" if the stream gave none), its data, and the last id of the stream."""

    name: str
    data: str
    id: str = ""


class SseDecoder:
    """Parses one stream; raises `BackendFailed` if it is not UTF-8 or an event is too large."""

    __slots__ = ("_after_cr", "_buffer", "_data", "_id", "_most", "_name", "_size", "_start", "_who", "retry_ms")

    def __init__(self, most: int = MAX_EVENT_BYTES, name: str = "the upstream") -> None:
        """`name` is the server's name in error messages."""
        self.retry_ms: int | None = None
        """How long the server wants a client to wait before it reconnects."""
        self._most, self._who = most, name
        self._buffer = bytearray()
        self._after_cr = False
        self._start = True
        self._name, self._id = "", ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")  # the second byte of a line end that was cut
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not self._data and not self._name and (events := self._plain(chunk)):
            return events
        if b"\n" not in chunk:
            self._buffer += chunk
            self._bound(len(self._buffer))
            return []
        *lines, rest = (bytes(self._buffer) + chunk if self._buffer else chunk).split(b"\n")
        self._buffer = bytearray(rest)
        self._bound(len(rest))
        events = []
        for line in lines:
            if line:
                self._line(line)
            elif self._data:
                events.append(self._event())
            else:
                self._name = ""
        return events

    def _plain(self, chunk: bytes) -> list[SseEvent]:
        """The events of a chunk in the usual form: one line of data, with a name or without.

        Empty if the chunk has anything else, or no complete event; then nothing was consumed.
        """
        end = chunk.rfind(b"\n\n")
        if end < 0:
            return []
        end += len(self._buffer)
        whole = bytes(self._buffer) + chunk if self._buffer else chunk
        if self._start and whole.startswith(BYTE_ORDER_MARK):
            return []
        try:
            text = whole[:end].decode()
        except UnicodeDecodeError:
            return []
        events, id = list[SseEvent](), self._id
        for piece in text.split("\n\n"):
            if piece.startswith("data: ") and "\n" not in piece:
                events.append(SseEvent("message", piece[6:], id))
                continue
            name, _, data = piece.partition("\n")
            if not name.startswith("event: ") or not data.startswith("data: ") or "\n" in data:
                return []
            events.append(SseEvent(name[7:] or "message", data[6:], id))
        self._start, self._buffer = False, bytearray(whole[end + 2:])
        if self._buffer:
            self._bound(len(self._buffer))
        return events

    def _event(self) -> SseEvent:
        data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
        event = SseEvent(self._name or "message", data, self._id)
        self._name, self._data, self._size = "", [], 0
        return event

    def _bound(self, held: int) -> None:
        if held + self._size > self._most:
            raise BackendFailed(f"{self._who} sent an event of more than {self._most} bytes")

    def _line(self, line: bytes) -> None:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise BackendFailed(f"{self._who} sent an event that is not UTF-8") from None
        if self._start:
            self._start, text = False, text.removeprefix(BYTE_ORDER_MARK.decode())
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(line)
            self._bound(0)
        elif name == "event":
            self._name = value
        elif name == "id":
            self._id = self._id if "\0" in value else value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value[:9])
