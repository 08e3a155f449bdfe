"""The recorder: writes each thing that crosses the wire as one line, at once and without its secrets."""

import base64
import time
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import IO, Any

import orjson
from yarl import URL

from conformance.kit.secrets import Redactor
from conformance.offline.jsonl import VERSION

LARGEST = 8 * 1024 * 1024
LARGEST_EVENT = 1024 * 1024
BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")
DECODED = ("", "identity", "gzip", "x-gzip", "deflate")
Headers = Iterable[tuple[str, str]]


class Recorder:
    """Writes one file; every line is whole and flushed before the next thing happens."""

    def __init__(
        self,
        file: IO[bytes],
        dialect: str,
        target: URL,
        redactor: Redactor,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._clock = clock
        self._start = clock()
        self.redactor = redactor
        self.exchanges = 0
        self.messages = 0
        self.size = 0
        address = str(target.with_user(None).with_query(None))
        started = datetime.now(UTC).isoformat(timespec="seconds")
        mount = target.raw_path.rstrip("/")
        self._write("recording", version=VERSION, dialect=dialect, target=address, mount=mount, started=started)

    def opened(self, method: str, path: str, query: str, headers: Headers) -> "Entry":
        """A request has come."""
        self.exchanges += 1
        entry = Entry(self, self.exchanges)
        told = {"query": self.redactor.query(query)} if query else {}
        listed = self.redactor.headers(headers)
        entry.note("request", method=method, path=self.redactor.path(path), **told, headers=listed)
        return entry

    def stopped(self) -> None:
        """The last line."""
        self._write("stopped", exchanges=self.exchanges, messages=self.messages)

    def note(self, kind: str, exchange: int, told: dict[str, Any]) -> None:
        self.messages += kind in ("event", "frame")
        self._write(kind, exchange=exchange, at=round(self._clock() - self._start, 4), **told)

    def _write(self, kind: str, **told: Any) -> None:
        line = orjson.dumps({"type": kind, **told}) + b"\n"
        self.size += len(line)
        self._file.write(line)
        self._file.flush()


class Entry:
    """One exchange as it goes into the file."""

    def __init__(self, recorder: Recorder, number: int) -> None:
        self._recorder = recorder
        self._number = number
        self._is_over = False
        self.has_closed = False

    def note(self, kind: str, **told: Any) -> None:
        self._recorder.note(kind, self._number, told)

    def request_body(self, headers: Any) -> "Body":
        is_form = "urlencoded" in headers.get("Content-Type", "")
        return Body(self, "request.body", headers.get("Content-Encoding", ""), is_sent=True, is_form=is_form)

    def answered(self, status: int, reason: str, headers: Headers) -> None:
        self.note("response", status=status, reason=reason, headers=self._recorder.redactor.headers(headers))

    def answer_body(self, headers: Any) -> "Body":
        is_stream = headers.get("Content-Type", "").startswith("text/event-stream")
        return Body(self, "event" if is_stream else "body", headers.get("Content-Encoding", ""))

    def frame(self, data: str | bytes, *, is_sent: bool) -> None:
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        who = "client" if is_sent else "server"
        self.note("frame", **{"from": who}, **self.shown(raw[:LARGEST], is_sent, False, len(raw) - LARGEST, data))

    def closed(self, code: int | None, reason: str, *, is_sent: bool) -> None:
        self.has_closed = True
        told = {"from": "client" if is_sent else "server", "code": code}
        self.note("close", **told, reason=self._recorder.redactor.text(reason))

    def ended(self, ending: str, why: str = "") -> None:
        """Write how the exchange ended, once."""
        if not self._is_over:
            self._is_over = True
            self.note("end", ending=ending, **({"why": self._recorder.redactor.text(why)} if why else {}))

    def shown(
        self, raw: bytes, is_sent: bool, is_form: bool, left_out: int = 0, kind: str | bytes = ""
    ) -> dict[str, Any]:
        """Bytes as they stand in a line: as text where they are text."""
        data = self._recorder.redactor.data(raw, is_sent=is_sent, is_form=is_form)
        told: dict[str, Any] = {"left_out": left_out} if left_out > 0 else {}
        try:
            if isinstance(kind, bytes):
                raise UnicodeDecodeError("utf-8", raw, 0, 0, "a binary frame")
            return {"text": data.decode(), **told}
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode(), **told}


class Body:
    """A body on its way: events are written as they are complete, anything else when it has ended."""

    def __init__(
        self, entry: Entry, kind: str, encoding: str, *, is_sent: bool = False, is_form: bool = False
    ) -> None:
        self._entry = entry
        self._kind = kind
        self._is_known = encoding.strip().lower() in DECODED
        self._unpack = zlib.decompressobj(wbits=47) if encoding and self._is_known and encoding != "identity" else None
        self._is_sent = is_sent
        self._is_form = is_form
        self._kept = bytearray()
        self._left_out = 0

    def feed(self, piece: bytes) -> None:
        piece = self._decoded(piece)
        if self._kind == "event":
            self._kept += piece
            self._events()
            return
        room = max(0, LARGEST - len(self._kept))
        self._kept += piece[:room]
        self._left_out += len(piece) - len(piece[:room])

    def close(self) -> None:
        if self._kept or self._left_out:
            self._write(bytes(self._kept))
        self._kept.clear()
        self._left_out = 0

    def _decoded(self, piece: bytes) -> bytes:
        if not self._is_known:
            self._left_out += len(piece)
            return b""
        if self._unpack is None:
            return piece
        try:
            found = self._unpack.decompress(piece, LARGEST)
        except zlib.error:
            self._left_out += len(piece)
            return b""
        self._left_out += len(self._unpack.unconsumed_tail)
        return found

    def _events(self) -> None:
        ends = [place + len(mark) for mark in BLANK_LINES if (place := self._kept.rfind(mark)) >= 0]
        done = max(ends, default=0) or (len(self._kept) if len(self._kept) > LARGEST_EVENT else 0)
        if done:
            whole = bytes(self._kept[:done])
            del self._kept[:done]
            for event in _parted(whole):
                self._write(event)

    def _write(self, raw: bytes) -> None:
        left_out, self._left_out = self._left_out, 0
        self._entry.note(self._kind, **self._entry.shown(raw, self._is_sent, self._is_form, left_out))


def _parted(whole: bytes) -> list[bytes]:
    """The blocks between blank lines, each with its own."""
    if b"\n\n" not in whole:
        return [whole]
    parts = whole.split(b"\n\n")
    blocks = [part + b"\n\n" for part in parts[:-1]]
    return [*blocks, parts[-1]] if parts[-1] else blocks
