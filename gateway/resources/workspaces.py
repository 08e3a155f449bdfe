"""Workspaces in folders: one folder of files per session."""

import asyncio
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import gateway.model as m
from gateway.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from gateway.ports import FileContent, WorkspaceItem
from gateway.private_files import make_private_folder

from .file_folder import content_of
from .workspace_paths import WorkspacePaths, check_name, entries_of, files_below, free_copy_path

SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
DRAFTS = ".drafts"


@dataclass(frozen=True, kw_only=True)
class WorkspaceLimits:
    """The limits of one workspace."""

    file_bytes: int = 100 * 1024 * 1024
    total_bytes: int = 1024 * 1024 * 1024
    files: int = 10_000


DEFAULT_WORKSPACE_LIMITS = WorkspaceLimits()


class FolderWorkspaces:
    """All workspaces of one folder; callers check the owner of the session."""

    def __init__(
        self,
        folder: Path,
        bounds: WorkspaceLimits = DEFAULT_WORKSPACE_LIMITS,
        *,
        trusted: Callable[[], bool] = lambda: False,
    ) -> None:
        """`trusted` says whether clients may write files that agents read as their configuration."""
        self._folder = folder
        self._bounds = bounds
        self._trusted = trusted

    def of(self, session_id: str) -> "FolderWorkspace":
        return FolderWorkspace(self.folder(session_id))

    def folder(self, session_id: str) -> "WorkspaceFolder":
        check_session_id(session_id)
        return WorkspaceFolder(
            self._folder / session_id, self._folder / DRAFTS, self._bounds, trusted=self._trusted())

    async def forget(self, session_id: str) -> None:
        """Delete the files of a deleted session."""
        await asyncio.to_thread(shutil.rmtree, self.folder(session_id).root, ignore_errors=True)


class FolderWorkspace:
    """The files of one session; threads wait for the disk."""

    def __init__(self, folder: "WorkspaceFolder") -> None:
        self._folder = folder

    @property
    def file_bytes(self) -> int:
        return self._folder.file_bytes

    async def items(self, path: str) -> list[WorkspaceItem]:
        return await asyncio.to_thread(self._folder.items, path)

    async def open(self, path: str) -> FileContent:
        return content_of(await asyncio.to_thread(self._folder.file, path))

    async def paths(self, folder: str = ".") -> list[str]:
        return await asyncio.to_thread(self._folder.paths, folder)

    async def write(self, path: str, content: bytes) -> str:
        return await asyncio.to_thread(self._folder.write, path, content)

    async def receive(self, chunks: AsyncIterator[bytes]) -> str:
        return str(await self._folder.receive(chunks))

    async def take(self, draft: str, path: str) -> str:
        return await asyncio.to_thread(self._folder.take, Path(draft), path)

    async def discard(self, draft: str) -> None:
        await asyncio.to_thread(Path(draft).unlink, missing_ok=True)

    async def pack(self, chunks: AsyncIterator[bytes]) -> FileContent:
        draft = self._folder.draft()
        try:
            with draft.open("wb") as opened:
                async for chunk in chunks:
                    await asyncio.to_thread(opened.write, chunk)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return replace(content_of(draft), discard=lambda: self.discard(str(draft)))

    async def remove(self, path: str) -> None:
        await asyncio.to_thread(self._folder.remove, path)

    async def rename(self, path: str, new_name: str) -> str:
        return await asyncio.to_thread(self._folder.rename, path, new_name)

    async def copy(self, path: str, to: str | None = None) -> str:
        return await asyncio.to_thread(self._folder.copy, path, to)


def check_session_id(session_id: str) -> None:
    """Refuse what would be a path that leads elsewhere."""
    if not SESSION_ID.fullmatch(session_id):
        raise NotFound(f"there is no session '{session_id}'")


class WorkspaceFolder:
    """The files of one session. Its methods wait for the disk: call them in a thread."""

    def __init__(self, root: Path, drafts: Path, bounds: WorkspaceLimits, *, trusted: bool = False) -> None:
        self.root = root
        self._trusted = trusted
        self._paths = WorkspacePaths(root)
        self._drafts = drafts
        self._bounds = bounds
        self._received = 0
        self._used: tuple[int, int] | None = None
        """How many files and bytes there are, counted before the first file is added."""

    @property
    def file_bytes(self) -> int:
        """How many bytes a file may have."""
        return self._bounds.file_bytes

    # -- reading --------------------------------------------------------------------------------------------------

    def items(self, path: str = ".") -> list[WorkspaceItem]:
        """The entries of a folder: first folders, then files, each by name."""
        folder = self._paths.place(path)
        if folder == self.root and not folder.exists():
            return []
        if not folder.is_dir():
            raise NotFound(f"there is no folder '{path}'")
        items = [WorkspaceItem(entry.name, None if entry.is_dir() else entry.stat().st_size, entry.stat().st_mtime)
                 for entry in entries_of(folder)]
        return sorted(items, key=lambda item: (not item.is_folder, item.name))

    def file(self, path: str) -> Path:
        """The path of a file, which may only be read."""
        place = self._paths.place(path)
        if not place.is_file():
            raise NotFound(f"there is no file '{path}'")
        return place

    def paths(self, folder: str = ".") -> list[str]:
        """The paths of all files of a folder, relative to it."""
        place = self._paths.place(folder)
        if not place.is_dir() and place != self.root:
            raise NotFound(f"there is no folder '{folder}'")
        return sorted(str(file.relative_to(place)) for file in files_below(place))

    # -- changing -------------------------------------------------------------------------------------------------

    def write(self, path: str, content: bytes) -> str:
        with self._drafted() as draft:
            draft.write_bytes(content)
        return self.take(draft, path)

    async def receive(self, chunks: AsyncIterator[bytes]) -> Path:
        """Write chunks into a draft, which `take` moves to its place: all of them, or nothing."""
        draft, size = self.draft(), 0
        try:
            with draft.open("wb") as opened:
                async for chunk in chunks:
                    size += len(chunk)
                    self._received += len(chunk)
                    self._must_be_small(size)
                    if self._received > self._bounds.total_bytes:
                        raise TooLarge(f"a workspace holds {self._bounds.total_bytes} bytes")
                    await asyncio.to_thread(opened.write, chunk)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return draft

    def take(self, draft: Path, path: str) -> str:
        """Move a draft to its place and return its path; the draft is removed in any case."""
        try:
            place = self._paths.file_place(path)
            self._must_be_content(place)
            self._make_room(draft.stat().st_size, place)
            make_private_folder(place.parent)
            draft.replace(place)
            return self._paths.name(place)
        except (NotADirectoryError, FileExistsError, IsADirectoryError):
            raise Conflict(f"'{path}' is below a file, or is a folder") from None
        finally:
            draft.unlink(missing_ok=True)

    def remove(self, path: str) -> None:
        place, self._used = self._paths.known(path), None
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink()

    def rename(self, path: str, new_name: str) -> str:
        place = self._paths.known(path)
        if new_name in (".", "..") or "/" in new_name:
            raise Invalid(f"'{new_name}' is not a name", param="new_name")
        target = place.with_name(check_name(new_name))
        self._must_be_content(target)
        return self._move(place, target)

    def copy(self, path: str, to: str | None = None) -> str:
        """Copy a file or a folder, beside itself or to another place."""
        place = self._paths.known(path)
        target = self._paths.file_place(to) if to is not None else free_copy_path(place)
        if target.exists() or target.is_relative_to(place):
            raise Conflict(f"'{self._paths.name(target)}' is there already, or is inside what is copied")
        self._must_be_content(target)
        files = list(files_below(place)) if place.is_dir() else [place]
        for file in files:
            self._must_be_content(target / file.relative_to(place))
        try:
            for file in files:
                with self._drafted() as draft:
                    shutil.copyfile(file, draft, follow_symlinks=False)
                self.take(draft, self._paths.name(target / file.relative_to(place)))
            if place.is_dir():
                make_private_folder(target)
        except BaseException:
            self._used = None
            shutil.rmtree(target, ignore_errors=True)  # remove the unfinished copy
            raise
        return self._paths.name(target)

    def _move(self, place: Path, target: Path) -> str:
        if target.exists() or target.is_symlink():
            raise Conflict(f"'{self._paths.name(target)}' is there already")
        place.rename(target)
        return self._paths.name(target)

    # -- room -----------------------------------------------------------------------------------------------------

    def draft(self) -> Path:
        """A new empty file on the same disk, to be written and then moved or removed."""
        make_private_folder(self._drafts)
        draft = self._drafts / secrets.token_hex(12)
        draft.touch(mode=0o600, exist_ok=False)
        return draft

    def _must_be_content(self, place: Path) -> None:
        if not self._trusted and m.is_agent_configuration(name := self._paths.name(place)):
            raise Forbidden(f"agents read '{name}' as their configuration; clients may write such files only if the "
                            "server's config.yaml has `workspace: {trust: true}`")

    @contextmanager
    def _drafted(self) -> Iterator[Path]:
        """A draft that is removed if writing it fails."""
        draft = self.draft()
        try:
            yield draft
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def _must_be_small(self, size: int) -> None:
        if size > self._bounds.file_bytes:
            raise TooLarge(f"a file may have {self._bounds.file_bytes} bytes")

    def _make_room(self, size: int, place: Path) -> None:
        self._must_be_small(size)
        if self._used is None:
            sizes = [file.stat().st_size for file in files_below(self.root)]
            self._used = len(sizes), sum(sizes)
        old = place.stat().st_size if place.is_file() else None
        files, total = self._used[0] + (old is None), self._used[1] + size - (old or 0)
        if files > self._bounds.files:
            raise TooLarge(f"a workspace holds {self._bounds.files} files")
        if total > self._bounds.total_bytes:
            raise TooLarge(f"a workspace holds {self._bounds.total_bytes} bytes")
        self._used = files, total
