"""Reads ZIPs from clients within limits; the sizes that a ZIP declares are not trusted."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import gateway.model as m
from gateway.errors import Invalid, TooLarge

CHUNK = 1024 * 1024
DIRECTORY_BYTES_PER_ENTRY = 512
"""How many bytes the list of the entries may have for each entry."""
LAST, END, END_OF_LARGE = 65_536 + 22, b"PK\5\6", b"PK\6\7"
"""Where the end of a ZIP begins at the latest, and with what; a ZIP of more than 4 GB has another end before that."""
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
PLAIN_MODES = (0, stat.S_IFREG, stat.S_IFDIR)
"""What an entry may be; a ZIP that was not made on Unix says nothing of it."""


class InvalidZip(Invalid):
    """The file is no ZIP, or none that is read here."""

    usual_reason = m.FaultReason.INVALID_ZIP


def open_zip(file: Path | BinaryIO, most: int) -> zipfile.ZipFile:
    """Open a ZIP that has so many entries at most."""
    try:
        if isinstance(file, Path):
            with file.open("rb") as opened:
                _check_directory(opened, most)
        else:
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
