"""HAR files, as browsers and mitmproxy save them: a whole session in one JSON document."""

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
from multidict import CIMultiDict

from conformance.offline.recording import Ending, Exchange, Frame, Piece, Recording, Unusable, pairs

ABORTED = "_error"
Found = dict[str, Any]


def read_har(path: Path, found: Any) -> Recording:
    """The recording in a HAR document."""
    log = found.get("log") if isinstance(found, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise Unusable(f"{path}: JSON, but no HAR file: it has no log.entries")
    if not entries:
        raise Unusable(f"{path}: the HAR file has no entries; was anything recorded before it was saved?")
    moments = _Moments()
    exchanges = []
    for number, entry in enumerate(entries, 1):
        try:
            exchanges.append(_exchange(number, entry, moments))
        except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
            raise Unusable(f"{path}: entry {number} is not whole: {type(error).__name__} {error}") from None
    recording = Recording(str(path), sorted(moments.settle(exchanges), key=lambda item: item.order))
    answered = [item for item in recording.exchanges if item.status and item.status not in (101, 204, 304)]
    if answered and not any(item.pieces for item in answered) and not any(item.frames for item in recording.exchanges):
        raise Unusable(
            f"{path}: no entry has the body of its response; save the HAR file with content "
            '("Save all as HAR with content" in browsers)'
        )
    return recording


class _Moments:
    """Orders the events of a HAR file by their times; our own recordings are ordered by lines."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def note(self, at: float) -> int:
        """A placeholder for a moment, which is replaced by its order later."""
        self._seen.append((at, len(self._seen)))
        return len(self._seen) - 1

    def settle(self, exchanges: list[Exchange]) -> list[Exchange]:
        ranked = {name: rank for rank, (_, name) in enumerate(sorted(self._seen), 1)}
        for item in exchanges:
            item.order, item.answered, item.ended = ranked[item.order], ranked[item.answered], ranked[item.ended]
            item.pieces = [Piece(it.place, ranked[it.order], it.at, it.data) for it in item.pieces]
            item.frames = [Frame(it.place, ranked[it.order], it.at, it.is_sent, it.text) for it in item.frames]
        return exchanges


def _exchange(number: int, entry: Found, moments: _Moments) -> Exchange:
    request, response = entry["request"], entry.get("response") or {}
    started = datetime.fromisoformat(entry["startedDateTime"]).timestamp()
    spent = max(0.0, float(entry.get("time") or 0.0)) / 1000
    receiving = max(0.0, float((entry.get("timings") or {}).get("receive") or 0.0)) / 1000
    address, place = urlsplit(request["url"]), f"entry {number}"
    item = Exchange(number, place, moments.note(started), started, request["method"], address.path or "/")
    item.query = pairs(address.query)
    item.headers, item.reply_headers = _headers(request), _headers(response)
    item.body = _posted(request.get("postData"))
    item.answered = moments.note(started + max(0.0, spent - receiving))
    item.status = int(response.get("status") or 0) or None
    content = response.get("content") or {}
    if "Content-Type" not in item.reply_headers and content.get("mimeType"):
        item.reply_headers["Content-Type"] = content["mimeType"]
    data = _content(content)
    if data:
        item.pieces = [Piece(place, moments.note(started + spent), started + spent, data)]
    item.is_short = data is None and int(content.get("size") or 0) > 0
    item.frames = list(_frames(place, entry.get("_webSocketMessages") or [], moments))
    last = item.frames[-1].at if item.frames else started + spent
    item.ended = moments.note(max(last, started + spent))
    item.ending = _ending(item, entry, response)
    return item


def _ending(item: Exchange, entry: Found, response: Found) -> Ending:
    """How an exchange ended, as far as a HAR file tells."""
    if item.status is None:
        return Ending.REFUSED
    return Ending.LEFT if entry.get(ABORTED) or response.get(ABORTED) else Ending.WHOLE


def _frames(place: str, messages: list[Found], moments: _Moments) -> Iterator[Frame]:
    for number, told in enumerate(messages, 1):
        at = float(told["time"])
        text = str(told["data"]) if told.get("opcode", 1) == 1 else None
        yield Frame(f"{place}, message {number}", moments.note(at), at, told["type"] in ("send", "request"), text)


def _headers(told: Found) -> CIMultiDict[str]:
    listed = [(str(item["name"]), str(item["value"])) for item in told.get("headers") or []]
    return CIMultiDict([(name, value) for name, value in listed if not name.startswith(":")])


def _posted(told: Found | None) -> bytes | None:
    if not told or told.get("text") is None:
        return None
    text = str(told["text"])
    return base64.b64decode(text) if told.get("encoding") == "base64" else text.encode()


def _content(told: Found) -> bytes | None:
    """The body, if the file holds it."""
    if told.get("text") is None:
        return None
    text = str(told["text"])
    return base64.b64decode(text) if told.get("encoding") == "base64" else text.encode()


def loads(path: Path) -> Any:
    """The parsed document; Unusable says why it cannot be parsed."""
    try:
        return orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise Unusable(f"{path}: neither a recording (JSON lines) nor a HAR file (JSON): {error}") from None
