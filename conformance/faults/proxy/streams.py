"""Server-sent events on their way through the proxy: cut into blocks, each passed on as soon as it is whole."""

import re
from collections.abc import AsyncIterator, Iterable

import orjson

from conformance.faults.proxy.passing import SSE, Listener, Told, event_name, parsed
from conformance.kit.sse import SseParser

BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class Blocks:
    """Bytes in, blocks out: everything up to and with a blank line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        self._rest += piece
        found: list[bytes] = []
        while end := BLANK_LINE.search(self._rest):
            found.append(self._rest[: end.end()])
            self._rest = self._rest[end.end() :]
        return found

    def left(self) -> bytes:
        """What never got its blank line."""
        return self._rest


def read_block(block: bytes) -> Told | None:
    """The event in a block; None for comments and blocks without data."""
    for event in SseParser().feed(block):
        json = parsed(event.data)
        return Told(SSE, event_name(event.event, json), json, block, event.event, event.id)
    return None


def written(told: Told) -> bytes:
    """The event as a block; the bytes it came in if nothing was changed."""
    if told.raw is not None:
        return told.raw
    lines = [b"event: " + told.label.encode()] if told.label not in ("", "message") else []
    lines += [b"id: " + told.id.encode()] if told.id else []
    return b"\n".join([*lines, b"data: " + orjson.dumps(told.json)]) + b"\n\n"


async def passed(pieces: AsyncIterator[bytes], listener: Listener) -> AsyncIterator[bytes]:
    """What leaves the proxy for what comes in, piece by piece; Cut where the connection breaks."""
    blocks = Blocks()
    async for piece in pieces:
        for block in blocks.feed(piece):
            told = read_block(block)
            for part in _leaving(listener.told(told), listener) if told is not None else listener.framed(block):
                yield part
    for part in _leaving(listener.ended(), listener):
        yield part
    if left := blocks.left():
        yield left


def _leaving(messages: Iterable[Told], listener: Listener) -> Iterable[bytes]:
    for told in messages:
        yield from listener.framed(written(told))
