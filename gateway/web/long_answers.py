"""Long answers: sent a piece at a time, so that nobody waits while a whole one is put together and written."""

from collections.abc import Iterator, Sequence

from aiohttp import Payload, web
from aiohttp.abc import AbstractStreamWriter

from gateway.time_slices import turn

PLAIN_BYTES = 1024 * 1024
"""Up to so many bytes an answer is sent as a whole."""
BLOCK_BYTES = 512 * 1024
"""So many bytes of a longer one are written in one turn."""


def answer(pieces: Sequence[bytes], content_type: str, status: int = 200) -> web.Response:
    """A response whose body is these pieces, one after the other."""
    body = b"".join(pieces) if sum(map(len, pieces)) <= PLAIN_BYTES else LongBody(pieces, content_type)
    return web.Response(body=body, status=status, content_type=content_type)


class LongBody(Payload):
    """A body that is never in memory once more as a whole; its length is known before it is sent."""

    _autoclose = True

    def __init__(self, pieces: Sequence[bytes], content_type: str) -> None:
        super().__init__(pieces, content_type=content_type)
        self._pieces = pieces
        self._size = sum(map(len, pieces))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._pieces).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for block in _blocks(self._pieces):
            await turn()
            await writer.write(block)


def _blocks(pieces: Sequence[bytes]) -> Iterator[bytes]:
    """Small pieces put together, and large ones cut."""
    block = bytearray()
    for piece in pieces:
        for start in range(0, len(piece), BLOCK_BYTES):
            block += piece[start:start + BLOCK_BYTES]
            if len(block) >= BLOCK_BYTES:
                yield bytes(block)
                block.clear()
    if block:
        yield bytes(block)
