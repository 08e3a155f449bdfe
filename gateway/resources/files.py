"""Uploaded files: under random ids, each stored completely or not at all, and signed links to them."""

import asyncio
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Protocol

import msgspec

from gateway.errors import Forbidden, Invalid, NotFound, TooLarge
from gateway.ids import random_id
from gateway.json_values import JsonValue
from gateway.ports import (
    ByteStore,
    Clock,
    DownloadHeaders,
    FileContent,
    FileLink,
    Files,
    Resource,
    Resources,
    StoredFile,
)

FILE_ID = re.compile(r"file_[0-9a-f]{24}")


class UploadRules(Protocol):
    """Which files are allowed, and how long links are valid; read each time, because settings may change."""

    @property
    def max_bytes(self) -> int: ...
    @property
    def types(self) -> tuple[str, ...]: ...
    @property
    def link_seconds(self) -> float: ...


class FileStore:
    """Uploaded files under random ids; their bytes are in a folder or a bucket, their names and owners elsewhere."""

    def __init__(
        self, store: ByteStore, clock: Clock, rules: Callable[[], UploadRules], secrets: Callable[[], Sequence[bytes]],
    ) -> None:
        """Of the secrets, which all servers share, the first signs links, and each is accepted."""
        self._store = store
        self._clock = clock
        self._rules = rules
        self._secrets = secrets

    # -- bytes ----------------------------------------------------------------------------------------------------

    def check_media_type(self, media_type: str) -> None:
        types = self._rules().types
        if not any(fnmatchcase(media_type, pattern.lower()) for pattern in types):
            raise Invalid(f"files of type {media_type} are not taken; {', '.join(types)} are", param="file")

    async def store(self, chunks: AsyncIterator[bytes], file_id: str | None = None) -> StoredFile:
        """Store all chunks, or nothing if there are too many bytes, none, or the sender stops."""
        file_id, taken = file_id or random_id("file"), _Taken(self._rules().max_bytes)
        await self._store.put(file_id, taken.checked(chunks))
        return StoredFile(file_id=file_id, size=taken.size, sha256=taken.digest.hexdigest())

    async def open(self, file_id: str) -> FileContent:
        """The bytes of a file; an id that was not made here is refused."""
        try:
            if FILE_ID.fullmatch(file_id):
                return await self._store.open(file_id)
        except NotFound:
            pass
        raise NotFound(f"there is no file '{file_id}'")

    async def remove(self, file_id: str) -> None:
        if FILE_ID.fullmatch(file_id):
            await self._store.remove(file_id)

    # -- links ----------------------------------------------------------------------------------------------------

    def link(self, file_id: str, name: str, media_type: str) -> tuple[str, float]:
        """A signed link to the file, and when it expires."""
        expires = self._clock() + self._rules().link_seconds
        claim = msgspec.json.encode(FileLink(file_id=file_id, name=name, media_type=media_type, expires=expires))
        return f"{_spell(claim)}.{_spell(self._signatures(claim)[0])}", expires

    def read_link(self, word: str) -> FileLink:
        """The content of a link, if its signature is right and it has not expired."""
        claim, _, signature = word.partition(".")
        try:
            read, signed = _unspell(claim), _unspell(signature)
        except ValueError:
            raise NotFound("this link leads nowhere") from None
        if not any(hmac.compare_digest(right, signed) for right in self._signatures(read)):
            raise NotFound("this link leads nowhere")
        link = msgspec.json.decode(read, type=FileLink)
        if link.expires < self._clock():
            raise Forbidden("this link has expired: ask for a new one")
        return link

    def _signatures(self, claim: bytes) -> list[bytes]:
        return [hmac.digest(secret, claim, "sha256") for secret in self._secrets()]

    async def direct_link(self, file_id: str, headers: DownloadHeaders) -> tuple[str, float] | None:
        seconds = self._rules().link_seconds
        url = await self._store.direct_url(file_id, headers, seconds)
        return None if url is None else (url, self._clock() + seconds)


class _Taken:
    """Counts and hashes what passes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size, self.digest = 0, sha256()

    async def checked(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            self.size += len(chunk)
            if self.size > self._most:
                raise TooLarge(f"the file is larger than {self._most} bytes", param="file")
            await asyncio.to_thread(self.digest.update, chunk)
            yield chunk
        if self.size == 0:
            raise Invalid("the file is empty", param="file")


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


def _spell(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _unspell(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
