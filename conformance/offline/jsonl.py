"""Recordings of our own: one JSON line for each thing that crossed the wire; see docs/conformance.md."""

import base64
import binascii
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from multidict import CIMultiDict

from conformance.offline.recording import Ending, Exchange, Frame, Piece, Recording, Unusable, pairs

VERSION = 1
KNOWN = frozenset({"request", "request.body", "response", "body", "event", "frame", "close", "end", "stopped"})


def read_jsonl(path: Path) -> Recording:
    """The recording at the path, read line by line."""
    with path.open("rb") as lines:
        return _Reader(path).read(lines)


class _Reader:
    """Puts the lines of one file together."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: dict[int, Exchange] = {}
        self._recording = Recording(str(path), [])
        self._strange: set[str] = set()

    def read(self, lines: Iterable[bytes]) -> Recording:
        for number, line in enumerate(lines, 1):
            if line.strip():
                self._take(number, line)
        if not self._recording.dialect:
            raise Unusable(f"{self._path}: the file is empty; a recording begins with a line of its version")
        if self._strange:
            names = ", ".join(sorted(self._strange))
            self._recording.remarks.append(f"lines of unknown types were ignored: {names}")
        return self._recording

    def _take(self, number: int, line: bytes) -> None:
        try:
            told = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if not line.endswith(b"\n") and self._recording.dialect:
                self._recording.remarks.append(f"line {number} is cut off; the rest was judged without it")
                return
            words = f"not JSON ({error}); is this a recording of `dragoman record`?"
            raise Unusable(f"{self._path}:{number}: {words}") from None
        if not isinstance(told, dict):
            raise Unusable(f"{self._path}:{number}: a line must be an object, not {type(told).__name__}")
        if not self._recording.dialect:
            self._begin(number, told)
        else:
            self._follow(number, told)

    def _begin(self, number: int, told: dict[str, Any]) -> None:
        if told.get("type") != "recording":
            wanted = f'the first line must be {{"type": "recording", "version": {VERSION}, …}}'
            raise Unusable(f"{self._path}:{number}: {wanted}; was its beginning cut off?")
        if told.get("version") != VERSION:
            seen = f"this is version {told.get('version')!r} of the format"
            raise Unusable(f"{self._path}:{number}: {seen}; version {VERSION} is read here")
        self._recording.dialect = str(told.get("dialect") or "unknown")
        self._recording.mount = str(told.get("mount") or "")

    def _follow(self, number: int, told: dict[str, Any]) -> None:
        kind = str(told.get("type"))
        if kind not in KNOWN:
            self._strange.add(kind)
            return
        if kind == "stopped":
            return
        try:
            self._keep(kind, number, told)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise Unusable(f"{self._path}:{number}: a line of the type {kind} is not whole: {_said(error)}") from None

    def _keep(self, kind: str, number: int, told: dict[str, Any]) -> None:
        name, at, place = int(told["exchange"]), float(told.get("at", 0.0)), f"line {number}"
        if kind == "request":
            path, query = str(told["path"]), pairs(str(told.get("query") or ""))
            exchange = Exchange(name, place, number, at, str(told["method"]), path, query, _headers(told))
            self._open[name] = exchange
            self._recording.exchanges.append(exchange)
            return
        exchange = self._open[name]
        match kind:
            case "request.body":
                exchange.body = (exchange.body or b"") + _data(told)
                exchange.is_short |= bool(told.get("left_out"))
            case "response":
                exchange.status, exchange.answered = int(told["status"]), number
                exchange.reply_headers = _headers(told)
            case "body" | "event":
                exchange.pieces.append(Piece(place, number, at, _data(told)))
                exchange.is_short |= bool(told.get("left_out"))
            case "frame":
                exchange.frames.append(Frame(place, number, at, told["from"] == "client", _text(told)))
            case "close":
                exchange.close_code = told.get("code")
            case "end":
                exchange.ended, exchange.ending = number, Ending(told["ending"])


def _headers(told: dict[str, Any]) -> CIMultiDict[str]:
    return CIMultiDict([(str(name), str(value)) for name, value in told.get("headers", [])])


def _data(told: dict[str, Any]) -> bytes:
    return base64.b64decode(told["base64"]) if "base64" in told else str(told["text"]).encode()


def _text(told: dict[str, Any]) -> str | None:
    return None if "base64" in told else str(told["text"])


def _said(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)
