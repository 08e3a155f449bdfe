"""What dialects share beside conversations: things that users keep, answers, files, and keys."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct


class Resource(Struct, frozen=True, kw_only=True):
    """One version of one thing a user keeps here: an agent, an environment, a file, a memory …

    `body` is the house's spelling of it, never a dialect's; `secrets` are never shown to anybody. `parent` is the
    resource it belongs to, if it belongs to one. `ordinal` grows with each resource created and is never used again.
    """

    kind: str
    resource_id: str
    owner: str
    ordinal: int
    version: int
    created_at: float
    updated_at: float
    body: dict[str, Any]
    secrets: dict[str, str] = {}
    parent: str = ""
    archived_at: float | None = None

    def __repr__(self) -> str:
        """Without what it says: a body may be long, and secrets are nobody's to read in the server log."""
        return f"Resource({self.kind} '{self.resource_id}', version {self.version}, of '{self.owner}')"


class Resources(Protocol):
    """One store behind all dialects. Other people's resources are not found; old versions are kept until deletion."""

    async def create(
        self, kind: str, owner: str, body: dict[str, Any], *, secrets: dict[str, str] | None = ..., parent: str = ...,
        resource_id: str | None = ..., most: int | None = ..., most_below: int | None = ...,
    ) -> Resource:
        """A new one; `Conflict` if its owner has `most` of this kind, or `most_below` of it with this parent."""
    async def get(self, kind: str, owner: str, resource_id: str, version: int | None = ...) -> Resource: ...
    async def versions(self, kind: str, owner: str, resource_id: str) -> Sequence[Resource]:
        """Oldest first."""
    async def list(
        self, kind: str, owner: str, *, parent: str | None = ..., before: int | None = ..., after: int | None = ...,
        limit: int = ..., archived: bool = ..., oldest_first: bool = ...,
    ) -> Sequence[Resource]:
        """A page by ordinal, newest first unless said otherwise; archived ones only if asked for."""
    async def update(
        self, kind: str, owner: str, resource_id: str, body: dict[str, Any], *, secrets: dict[str, str] | None = ...,
        expected: int | None = ...,
    ) -> Resource:
        """A new version in the place of the old; `Conflict` if `expected` is not the current one."""
    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource: ...
    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        """The resource, its versions, and whatever belongs to it."""


class StoredResponse(Struct, frozen=True, kw_only=True):
    """What was answered to a request that carried a key; `digest` stands for what was asked, if that is known."""

    digest: str
    status: int
    content_type: str
    body: bytes


IdempotencyKey = tuple[str, str, str, str]
"""Owner, method, path and key."""


class ResponseStore(Protocol):
    """The answers to requests that carried a key; bounded in number, bytes and age: the oldest make room."""

    async def find(self, place: IdempotencyKey) -> StoredResponse | None: ...
    async def store(self, place: IdempotencyKey, answer: StoredResponse) -> None:
        """Returns when it is safe; takes the place of an older one, and is itself the last to make room."""


class StoredFile(Struct, frozen=True, kw_only=True):
    """Bytes that are kept: under which id, how many, and which."""

    file_id: str
    size: int
    sha256: str


class FileLink(Struct, frozen=True, kw_only=True):
    """What a signed link stands for: a file, how to call it, and until when."""

    file_id: str
    name: str
    media_type: str
    expires: float


class Files(Protocol):
    """Bytes by id. Whose they are and what they are called is a `Resource`'s to say."""

    def check_media_type(self, media_type: str) -> None:
        """Refuse a type of file that is not taken here."""
    async def store(self, chunks: AsyncIterator[bytes]) -> StoredFile:
        """Take all the chunks, or nothing."""
    def path(self, file_id: str) -> Path: ...
    async def remove(self, file_id: str) -> None: ...
    def link(self, file_id: str, name: str, media_type: str) -> tuple[str, float]:
        """A word that stands for the file for a while, and when it ceases to."""
    def read_link(self, word: str) -> FileLink:
        """What such a word stands for."""


class TokenBuckets(Protocol):
    """Buckets of tokens, one per owner, that several servers share."""

    async def grant(self, owner: str, rate: float, size: int, wanted: int) -> tuple[int, float]:
        """How many of the wanted tokens there are; if none, after how many seconds there is one.

        The bucket holds `size` tokens, and `rate` come every second.
        """




