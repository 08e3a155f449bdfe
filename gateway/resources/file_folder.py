"""Bytes by name in one folder, each stored completely or not at all."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from gateway.errors import NotFound
from gateway.ports import Clock, DownloadHeaders, FileContent
from gateway.private_files import make_private_folder

PART = ".part-"
LINK_SECRET = ".secret"  # noqa: S105  # the name of a file
STALE = 86_400
"""Seconds after which an unfinished upload is deleted."""
SWEEP_SECONDS = 3600
"""How often unfinished uploads are looked for, at most."""
BATCH = 1024 * 1024


class FileFolder:
    """The files of one folder; callers give names that are safe."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._next_sweep = 0.0
        self._secret = b""

    async def put(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Store all chunks, or nothing if the sender stops or the disk is full."""
        await asyncio.to_thread(self._sweep)
        part = _created(self._folder / f"{PART}{secrets.token_hex(12)}")  # no thread: it cannot be cancelled
        file = part.open("wb", buffering=BATCH)
        try:
            with file:
                async for chunk in chunks:
                    await asyncio.to_thread(file.write, chunk)
                await asyncio.to_thread(_settle, file)
            part.rename(self._folder / name)
        finally:
            part.unlink(missing_ok=True)

    async def open(self, name: str) -> FileContent:
        return content_of(self._folder / name)

    async def remove(self, name: str) -> None:
        await asyncio.to_thread((self._folder / name).unlink, missing_ok=True)

    async def direct_url(self, name: str, headers: DownloadHeaders, seconds: float) -> str | None:
        """There is none: clients read through the gateway."""
        return None

    def link_secret(self) -> bytes:
        """The secret that signs links, which all servers of the folder share; it is made when it is first needed."""
        self._secret = self._secret or self._make_secret()
        return self._secret

    def _sweep(self) -> None:
        """Create the folder, and from time to time delete unfinished uploads of a server that died."""
        make_private_folder(self._folder)
        if self._clock() < self._next_sweep:
            return  # a look at the names of all files would make each upload dearer than the one before
        self._next_sweep = self._clock() + SWEEP_SECONDS
        for left in self._folder.glob(f"{PART}*"):
            with suppress(FileNotFoundError):  # the upload has just been finished
                if left.stat().st_mtime < self._clock() - STALE:
                    left.unlink()

    def _make_secret(self) -> bytes:
        make_private_folder(self._folder)
        file, beside = self._folder / LINK_SECRET, _created(self._folder / f"{PART}{secrets.token_hex(12)}")
        try:
            beside.write_bytes(secrets.token_bytes(32))
            os.link(beside, file)
        except FileExistsError:
            pass
        finally:
            beside.unlink()
        return file.read_bytes()


def content_of(path: Path) -> FileContent:
    """The bytes of a file of this machine; raises `NotFound`."""
    if not path.is_file():
        raise NotFound(f"there is no file '{path.name}'")
    found = path.stat()
    return FileContent(
        size=found.st_size, changed_at=found.st_mtime, path=path, read=lambda start, end: _read(path, start, end))


async def _read(path: Path, start: int, end: int) -> AsyncIterator[bytes]:
    with path.open("rb") as opened:
        opened.seek(start)
        while start < end and (chunk := await asyncio.to_thread(opened.read, min(BATCH, end - start))):
            start += len(chunk)
            yield chunk


def _created(path: Path) -> Path:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return path


def _settle(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
