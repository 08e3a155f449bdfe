"""What a server has compressed, as it was before: so much of it at a time as can be held, and to its last byte."""

import zlib

from gateway.errors import BackendFailed, ConnectionLost

ENCODINGS = ("gzip", "x-gzip", "deflate")
MAX_STEP_BYTES = 1024 * 1024
"""So many bytes are had at a time: a few that were sent may become very many."""
_EITHER, _BARE = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS
_MAGIC, _METHOD = 0x1f, 8


class Decompressor:
    """One body. Feed what came of it, take until there is nothing, and tell when all has come."""

    def __init__(self, name: str, encoding: str) -> None:
        """`name` is who is complained of."""
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
        """Some more; nothing where more has to be fed first."""
        while self._packed or self._has_more:
            try:
                said = self._step(most)
            except zlib.error:
                raise ConnectionLost(
                    f"the connection to {self._name} broke (its compressed data are malformed)"
                ) from None
            if said:
                return said
        return b""

    def _step(self, most: int) -> bytes:
        if self._stream is None:
            if self._is_over and self._packed[0] != _MAGIC:  # after the end there is another of its kind, or nothing
                self._packed = b""
                return b""
            self._stream = zlib.decompressobj(_window(self._packed[0]))
        said = self._stream.decompress(self._packed, most)
        self._packed, self._has_more = self._stream.unconsumed_tail, len(said) == most
        if self._stream.eof:
            self._packed, self._stream = self._stream.unused_data, None
            self._has_more, self._is_over = False, True
        return said

    def end(self) -> None:
        """Nothing more comes."""
        if self._stream is not None:
            raise ConnectionLost(f"the connection to {self._name} broke (its compressed data are incomplete)")


def decompressor_for(name: str, encoding: str) -> Decompressor | None:
    """What reads a body of this encoding; None where it can be read as it is."""
    encoding = encoding.strip().lower()
    return None if encoding in ("", "identity") else Decompressor(name, encoding)


def _window(first: int) -> int:
    """Some servers leave out the two bytes that should be before what is deflated."""
    return _EITHER if first == _MAGIC or first & 0x0f == _METHOD else _BARE
