"""Reads a stored file in a thread as if it were open on this machine: a ZIP is read from its end."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from gateway.ports import FileContent

if TYPE_CHECKING:
    from typing_extensions import Buffer

AHEAD = 1024 * 1024
"""How many bytes are read from a store at a time."""


@asynccontextmanager
async def opened_file(content: FileContent) -> AsyncIterator[BinaryIO]:
    """The file, for use in threads; of a store, only the parts that are read are fetched."""
    if content.path is not None:
        with await asyncio.to_thread(content.path.open, "rb") as file:
            yield file
    else:
        with io.BufferedReader(_ObjectReader(content, asyncio.get_running_loop()), AHEAD) as reader:
            yield cast(BinaryIO, reader)


class _ObjectReader(io.RawIOBase):
    """Asks the event loop for parts of an object; used in other threads than that of the loop."""

    def __init__(self, content: FileContent, loop: asyncio.AbstractEventLoop) -> None:
        self._content = content
        self._loop = loop
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._content.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: "Buffer", /) -> int:
        room = memoryview(buffer)
        end = min(self._content.size, self._at + room.nbytes)
        read = asyncio.run_coroutine_threadsafe(self._part(self._at, end), self._loop).result()
        room[:len(read)] = read
        self._at += len(read)
        return len(read)

    async def _part(self, start: int, end: int) -> bytes:
        return b"".join([chunk async for chunk in self._content.read(start, end)])
