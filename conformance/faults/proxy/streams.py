"""Server-sent events on their way through the proxy: cut into blocks, each passed on as soon as it is whole."""

import re
from collections.abc import AsyncIterator, Iterable

import orjson

from conformance.faults.proxy.interceptor import SSE, PassedMessage, StreamInterceptor, event_name, parsed
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


def read_block(block: bytes) -> PassedMessage | None:
    """The event in a block; None for comments and blocks without data."""
    for event in SseParser().feed(block):
        json = parsed(event.data)
        return PassedMessage(SSE, event_name(event.event, json), json, block, event.event, event.id)
    return None


def written(message: PassedMessage) -> bytes:
    """The event as a block; the bytes it came in if nothing was changed."""
    if message.raw is not None:
        return message.raw
    lines = [b"event: " + message.label.encode()] if message.label not in ("", "message") else []
    lines += [b"id: " + message.id.encode()] if message.id else []
    return b"\n".join([*lines, b"data: " + orjson.dumps(message.json)]) + b"\n\n"


async def passed(pieces: AsyncIterator[bytes], stream: StreamInterceptor) -> AsyncIterator[bytes]:
    """What leaves the proxy for what comes in, piece by piece; Cut where the connection breaks."""
    blocks = Blocks()
    async for piece in pieces:
        for block in blocks.feed(piece):
            message = read_block(block)
            for part in _leaving(stream.message(message), stream) if message is not None else stream.framed(block):
                yield part
    for part in _leaving(stream.ended(), stream):
        yield part
    if left := blocks.left():
        yield left


def _leaving(messages: Iterable[PassedMessage], stream: StreamInterceptor) -> Iterable[bytes]:
    for message in messages:
        yield from stream.framed(written(message))
