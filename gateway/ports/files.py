"""Bytes that belong to users: uploaded files and the workspaces of sessions, in a folder or in an object store."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from msgspec import Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """The bytes of one stored file, to be read in part or as a whole."""

    size: int
    read: Callable[[int, int], AsyncIterator[bytes]]
    """Yields the bytes from one position to before another one; fails before its first chunk if the store refuses."""
    path: Path | None = None
    """The file, if it is on this machine."""
    changed_at: float = 0.0
    discard: Callable[[], Awaitable[None]] | None = None
    """Removes a file that was made for one reader."""


class StoredFile(Struct, frozen=True, kw_only=True):
    """A stored file: its id, its size and its hash."""

    file_id: str
    size: int
    sha256: str


class FileLink(Struct, frozen=True, kw_only=True):
    """What a signed link contains: a file, its name and type, and when the link expires."""

    file_id: str
    name: str
    media_type: str
    expires: float


class Files(Protocol):
    """Bytes by id; their owner and their name are in a `Resource`."""

    def check_media_type(self, media_type: str) -> None:
        """Refuse a media type that is not allowed."""
    async def store(self, chunks: AsyncIterator[bytes], file_id: str | None = ...) -> StoredFile:
        """Store all chunks, or nothing; under a new id, or under one of the form of ours."""
    async def open(self, file_id: str) -> FileContent:
        """The bytes of a file; raises `NotFound`."""
    async def remove(self, file_id: str) -> None: ...
    def link(self, file_id: str, name: str, media_type: str) -> tuple[str, float]:
        """A signed link to the file, and when it expires."""
    def read_link(self, word: str) -> FileLink:
        """The content of a signed link."""
    async def direct_link(self, file_id: str, headers: "DownloadHeaders") -> tuple[str, float] | None:
        """A URL of the store itself, and when it expires, if clients may be sent there."""


class DownloadHeaders(Struct, frozen=True, kw_only=True):
    """The headers with which a store sends a file to a browser, which must not run it."""

    content_type: str
    content_disposition: str


class StoredObject(Struct, frozen=True, kw_only=True):
    """One object of a store."""

    name: str
    size: int
    changed_at: float = 0.0


class ByteStore(Protocol):
    """Bytes by name: a folder, or a bucket."""

    async def put(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Store all chunks, or nothing."""
    async def open(self, name: str) -> FileContent:
        """The bytes of this name; raises `NotFound`."""
    async def remove(self, name: str) -> None:
        """Remove the bytes, if there are any."""
    async def direct_url(self, name: str, headers: DownloadHeaders, seconds: float) -> str | None:
        """A URL of the store itself by which anybody may read the bytes, if clients may be sent there."""


class ObjectStore(ByteStore, Protocol):
    """A bucket: names can be listed, and an object can be copied within it."""

    async def list(self, prefix: str) -> Sequence[StoredObject]:
        """All objects whose names begin so, in the order of names."""
    async def copy(self, name: str, to: str) -> None: ...


@dataclass(frozen=True, slots=True)
class WorkspaceItem:
    """One entry of a folder; a folder has no size."""

    name: str
    size: int | None
    changed_at: float = field(default=0.0, compare=False)

    @property
    def is_folder(self) -> bool:
        return self.size is None


class Workspace(Protocol):
    """The files of one session, by paths that lead nowhere else."""

    @property
    def file_bytes(self) -> int:
        """How many bytes a file may have."""
    async def items(self, path: str) -> list[WorkspaceItem]:
        """The entries of a folder: first folders, then files, each by name."""
    async def open(self, path: str) -> FileContent: ...
    async def paths(self, folder: str = ...) -> list[str]:
        """The paths of all files of a folder, relative to it."""
    async def write(self, path: str, content: bytes) -> str: ...
    async def receive(self, chunks: AsyncIterator[bytes]) -> str:
        """Store chunks as a draft, which `take` moves to its place: all of them, or nothing."""
    async def take(self, draft: str, path: str) -> str:
        """Move a draft to its place and return its path; the draft is removed in any case."""
    async def discard(self, draft: str) -> None:
        """Remove a draft, if it is still there."""
    async def pack(self, chunks: AsyncIterator[bytes]) -> FileContent:
        """Store chunks, which are no file of the workspace, for one reader."""
    async def remove(self, path: str) -> None: ...
    async def rename(self, path: str, new_name: str) -> str: ...
    async def copy(self, path: str, to: str | None = ...) -> str:
        """Copy a file or a folder, beside itself or to another place."""


class Workspaces(Protocol):
    """All workspaces; callers check the owner of the session."""

    def of(self, session_id: str) -> Workspace: ...
    async def forget(self, session_id: str) -> None:
        """Delete the files of a deleted session."""
