"""Reads ZIPs from clients within limits, trusting no size that a ZIP declares; and packs ZIPs as a stream."""

import asyncio
import io
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import gateway.model as m
from gateway.errors import Invalid, TooLarge

if TYPE_CHECKING:
    from typing_extensions import Buffer

CHUNK = 1024 * 1024
DIRECTORY_BYTES_PER_ENTRY = 512
"""How many bytes the list of the entries may have for each entry."""
LAST, END, END_OF_LARGE = 65_536 + 22, b"PK\5\6", b"PK\6\7"
"""Where the end of a ZIP begins at the latest, and with what; a ZIP of more than 4 GB has another end before that."""
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP can say."""
PLAIN_MODES = (0, stat.S_IFREG, stat.S_IFDIR)
"""What an entry may be; a ZIP that was not made on Unix says nothing of it."""


class InvalidZip(Invalid):
    """The file is no ZIP, or none that is read here."""

    usual_reason = m.FaultReason.INVALID_ZIP


def open_zip(file: BinaryIO, most: int) -> zipfile.ZipFile:
    """Open a ZIP that has so many entries at most."""
    try:
        _check_directory(file, most)
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        raise InvalidZip("the file is not a ZIP") from None
    if len(archive.infolist()) > most:
        archive.close()
        raise _too_many(most)
    return archive


def check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuse an entry that is encrypted, a link or a device, or packed in an unknown way."""
    if (
        entry.flag_bits & 0x1
        or entry.compress_type not in COMPRESSIONS
        or stat.S_IFMT(entry.external_attr >> 16) not in PLAIN_MODES
    ):
        raise InvalidZip(f"{entry.filename[:80]!r} is encrypted, a link, or packed in an unknown way")


def read_entry(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """One entry; never more than so many bytes, whatever the ZIP says of itself."""
    return b"".join(entry_chunks(archive, name, most, f"{name[:80]!r} is larger than {most} bytes"))


def entry_chunks(archive: zipfile.ZipFile, name: str, most: int, problem: str | None = None) -> Iterator[bytes]:
    """One entry, a chunk at a time; never more than so many bytes, whatever the ZIP says of itself."""
    size = 0
    try:
        with archive.open(name) as opened:
            while chunk := opened.read(CHUNK):
                size += len(chunk)
                if size > most:
                    raise TooLarge(problem or f"{name[:80]!r} becomes more than a ZIP of this size may")
                yield chunk
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
        raise InvalidZip(f"{name[:80]!r} cannot be unpacked: {error}") from None


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A file that is to be packed."""

    name: str
    chunks: AsyncIterator[bytes]
    changed_at: float = 0.0


async def pack_entries(entries: AsyncIterator[ZipEntry]) -> AsyncIterator[bytes]:
    """The bytes of a ZIP of the entries, as they are made: neither the ZIP nor an entry is ever whole in memory."""
    made = _Made()
    archive = zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False)
    async for entry in entries:
        when = max(time.localtime(entry.changed_at)[:6], EARLIEST)
        head = zipfile.ZipInfo(entry.name, when)
        head.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(head, "w", force_zip64=True) as opened:
            async for chunk in entry.chunks:
                await asyncio.to_thread(opened.write, chunk)
                if piece := made.take():
                    yield piece
    archive.close()
    yield made.take()


class _Made(io.RawIOBase):
    """Holds what was written until it is taken."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, piece: "Buffer", /) -> int:
        self._held += piece
        return memoryview(piece).nbytes

    def tell(self) -> int:
        raise OSError("what was made can only be taken")

    def take(self) -> bytes:
        piece = bytes(self._held)
        self._held.clear()
        return piece


def _check_directory(file: BinaryIO, most: int) -> None:
    """Refuse a list of entries that is too long, before it is read: every entry takes a kilobyte of memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - LAST))
    last = file.read(LAST)
    at = last.rfind(END)
    if at < 0:
        raise ValueError("it has no end")
    [size] = struct.unpack_from("<L", last, at + 12)
    if size > DIRECTORY_BYTES_PER_ENTRY * most or last[max(0, at - 20):at].startswith(END_OF_LARGE):
        raise _too_many(most)


def _too_many(most: int) -> TooLarge:
    return TooLarge(f"the ZIP has more than {most} entries")
