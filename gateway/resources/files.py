"""The file store: files on disk under random ids, each stored completely or not at all."""

import asyncio
import hmac
import os
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from gateway.errors import Forbidden, Invalid, NotFound, TooLarge
from gateway.ids import random_id
from gateway.json_values import JsonValue
from gateway.ports import Clock, FileLink, Files, Resource, Resources, StoredFile
from gateway.private_files import make_private_folder

FILE_ID = re.compile(r"file_[0-9a-f]{24}")
PART = ".part-"
SECRET = ".secret"  # noqa: S105  # the name of a file
STALE = 86_400
"""Seconds after which an unfinished upload is deleted."""
SWEEP_SECONDS = 3600
"""How often unfinished uploads are looked for, at most."""

BATCH = 1024 * 1024


class UploadRules(Protocol):
    """Which files are allowed, and how long links are valid; read each time, because settings may change."""

    @property
    def max_bytes(self) -> int: ...
    @property
    def types(self) -> tuple[str, ...]: ...
    @property
    def link_seconds(self) -> float: ...


class FileStore:
    """The files of one data folder; their names and owners are stored elsewhere."""

    def __init__(self, folder: Path, clock: Clock, rules: Callable[[], UploadRules]) -> None:
        self._folder = folder
        self._clock = clock
        self._rules = rules
        self._secret = b""
        self._next_sweep = 0.0

    # -- bytes ----------------------------------------------------------------------------------------------------

    def check_media_type(self, media_type: str) -> None:
        types = self._rules().types
        if not any(fnmatchcase(media_type, pattern.lower()) for pattern in types):
            raise Invalid(f"files of type {media_type} are not taken; {', '.join(types)} are", param="file")

    async def store(self, chunks: AsyncIterator[bytes]) -> StoredFile:
        """Store all chunks, or nothing if there are too many bytes, none, or the sender stops."""
        await asyncio.to_thread(self._sweep)
        part = _created(self._folder / f"{PART}{secrets.token_hex(12)}")  # no thread: it cannot be cancelled
        file, digest, size, most = part.open("wb", buffering=BATCH), sha256(), 0, self._rules().max_bytes
        try:
            with file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > most:
                        raise TooLarge(f"the file is larger than {most} bytes", param="file")
                    await asyncio.to_thread(_write, file, chunk, digest.update)
                if size == 0:
                    raise Invalid("the file is empty", param="file")
                await asyncio.to_thread(_settle, file)
            file_id = random_id("file")
            part.rename(self._folder / file_id)
            return StoredFile(file_id=file_id, size=size, sha256=digest.hexdigest())
        finally:
            part.unlink(missing_ok=True)

    def path(self, file_id: str) -> Path:
        """The path of a file; an id that was not made here is refused."""
        if not FILE_ID.fullmatch(file_id) or not (path := self._folder / file_id).is_file():
            raise NotFound(f"there is no file '{file_id}'")
        return path

    async def remove(self, file_id: str) -> None:
        if FILE_ID.fullmatch(file_id):
            await asyncio.to_thread((self._folder / file_id).unlink, missing_ok=True)

    # -- links ----------------------------------------------------------------------------------------------------

    def link(self, file_id: str, name: str, media_type: str) -> tuple[str, float]:
        """A signed link to the file, and when it expires."""
        expires = self._clock() + self._rules().link_seconds
        claim = msgspec.json.encode(FileLink(file_id=file_id, name=name, media_type=media_type, expires=expires))
        return f"{_spell(claim)}.{_spell(self._sign(claim))}", expires

    def read_link(self, word: str) -> FileLink:
        """The content of a link, if its signature is right and it has not expired."""
        claim, _, signature = word.partition(".")
        try:
            read, signed = _unspell(claim), _unspell(signature)
        except ValueError:
            raise NotFound("this link leads nowhere") from None
        if not hmac.compare_digest(self._sign(read), signed):
            raise NotFound("this link leads nowhere")
        link = msgspec.json.decode(read, type=FileLink)
        if link.expires < self._clock():
            raise Forbidden("this link has expired: ask for a new one")
        return link

    def _sign(self, claim: bytes) -> bytes:
        """The signature with the secret of the folder, which all servers of the folder share."""
        self._secret = self._secret or self._make_secret()
        return hmac.digest(self._secret, claim, "sha256")

    # -- the folder -----------------------------------------------------------------------------------------------

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
        file, beside = self._folder / SECRET, _created(self._folder / f"{PART}{secrets.token_hex(12)}")
        try:
            beside.write_bytes(secrets.token_bytes(32))
            os.link(beside, file)
        except FileExistsError:
            pass
        finally:
            beside.unlink()
        return file.read_bytes()


async def create_file_resource(
    files: Files, resources: Resources, owner: str, stored: StoredFile, body: Mapping[str, JsonValue],
) -> Resource:
    """Make the resource of a stored file; if that fails, the file is removed."""
    try:
        return await resources.create(
            "file", owner, {"metadata": {}, **body, "size": stored.size, "sha256": stored.sha256},
            resource_id=stored.file_id,
        )
    except BaseException:
        await files.remove(stored.file_id)
        raise


def _created(path: Path) -> Path:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return path


def _write(file: BinaryIO, chunk: bytes, update: Callable[[bytes], None]) -> None:
    update(chunk)
    file.write(chunk)


def _settle(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _spell(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _unspell(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
