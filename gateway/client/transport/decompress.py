"""Decompresses bodies in steps of bounded size."""

import zlib

from gateway.errors import BackendFailed, ConnectionLost

ENCODINGS = ("gzip", "x-gzip", "deflate")
MAX_STEP_BYTES = 1024 * 1024
"""One step returns at most so many bytes: a few compressed bytes may stand for very many."""
_EITHER, _BARE = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
_MAGIC, _METHOD = 0x1f, 8


class Decompressor:
    """Decompresses one body: feed compressed bytes, take until nothing is returned, call `end` at the end."""

    def __init__(self, name: str, encoding: str) -> None:
        """`name` is the server's name in error messages."""
        self._name, self._encoding = name, encoding
        self._packed = b""
        self._stream: zlib._Decompress | None = None
        self._has_more = self._is_over = False

    def feed(self, packed: bytes) -> None:
        if self._encoding not in ENCODINGS:
            why = f"{self._name} answered in the encoding '{self._encoding[:40]}', which was not asked for"
            raise BackendFailed(why)
        self._packed += packed

    def take(self, most: int = MAX_STEP_BYTES) -> bytes:
        """Some decompressed bytes; empty if more must be fed first."""
        while self._packed or self._has_more:
            try:
                plain = self._step(most)
            except zlib.error:
                raise ConnectionLost(
                    f"the connection to {self._name} broke (its compressed data are malformed)"
                ) from None
            if plain:
                return plain
        return b""

    def _step(self, most: int) -> bytes:
        if self._stream is None:
            if self._is_over and self._packed[0] != _MAGIC:  # only another gzip member may follow
                self._packed = b""
                return b""
            self._stream = zlib.decompressobj(_window(self._packed[0]))
        plain = self._stream.decompress(self._packed, most)
        self._packed, self._has_more = self._stream.unconsumed_tail, len(plain) == most
        if self._stream.eof:
            self._packed, self._stream = self._stream.unused_data, None
            self._has_more, self._is_over = False, True
        return plain

    def end(self) -> None:
        """The body has ended; raises `ConnectionLost` if it is incomplete."""
        if self._stream is not None:
            raise ConnectionLost(f"the connection to {self._name} broke (its compressed data are incomplete)")


def decompressor_for(name: str, encoding: str) -> Decompressor | None:
    """A decompressor for this encoding; None if the body is not compressed."""
    encoding = encoding.strip().lower()
    return None if encoding in ("", "identity") else Decompressor(name, encoding)


def _window(first: int) -> int:
    """The window bits for zlib: some servers omit the two bytes of the zlib header."""
    return _EITHER if first == _MAGIC or first & 0x0f == _METHOD else _BARE
