"""Workspaces in an object store: the files of a session are objects below its name, and folders are their paths."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from weakref import WeakValueDictionary

from msgspec import structs

import gateway.model as m
from gateway.errors import Conflict, Forbidden, Invalid, NotFound, TooLarge
from gateway.ports import FileContent, ObjectStore, StoredObject, WorkspaceItem

from .workspace_paths import check_name, copy_names, path_components
from .workspaces import DEFAULT_WORKSPACE_LIMITS, DRAFTS, WorkspaceLimits, check_session_id

DRAFT = re.compile(r"[0-9a-f]{24}")
AT_ONCE = 8
"""How many objects are copied or removed at a time."""


class BucketWorkspaces:
    """All workspaces of one store; callers check the owner of the session."""

    def __init__(
        self, store: ObjectStore, bounds: WorkspaceLimits = DEFAULT_WORKSPACE_LIMITS, *,
        trusted: Callable[[], bool] = lambda: False,
    ) -> None:
        """`trusted` says whether clients may write files that agents read as their configuration."""
        self._store = store
        self._bounds = bounds
        self._trusted = trusted
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    def of(self, session_id: str) -> "BucketWorkspace":
        check_session_id(session_id)
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        return BucketWorkspace(self._store, session_id, self._bounds, lock, trusted=self._trusted())

    async def forget(self, session_id: str) -> None:
        """Delete the files of a deleted session, and its drafts."""
        check_session_id(session_id)
        for prefix in (f"{session_id}/", f"{DRAFTS}/{session_id}/"):
            await _each(self._store.remove, [one.name for one in await self._store.list(prefix)])


class BucketWorkspace:
    """The files of one session. Changes through this server happen one after the other."""

    def __init__(
        self, store: ObjectStore, session_id: str, bounds: WorkspaceLimits, lock: asyncio.Lock, *, trusted: bool,
    ) -> None:
        self._store = store
        self._root = f"{session_id}/"
        self._drafts = f"{DRAFTS}/{session_id}/"
        self._bounds = bounds
        self._lock = lock
        self._trusted = trusted
        self._received = 0

    @property
    def file_bytes(self) -> int:
        return self._bounds.file_bytes

    # -- reading --------------------------------------------------------------------------------------------------

    async def items(self, path: str) -> list[WorkspaceItem]:
        folder, found = _folder(path), dict[str, WorkspaceItem]()
        for one in await self._below(folder):
            name, is_below, _ = one.name.removeprefix(folder).partition("/")
            before = found.get(name, WorkspaceItem(name, None))
            size = None if is_below else one.size
            found[name] = WorkspaceItem(name, size, max(before.changed_at, one.changed_at))
        if folder and not found:
            raise NotFound(f"there is no folder '{path}'")
        return sorted(found.values(), key=lambda item: (not item.is_folder, item.name))

    async def open(self, path: str) -> FileContent:
        try:
            return await self._store.open(self._root + _name(path))
        except NotFound:
            raise NotFound(f"there is no file '{path}'") from None

    async def paths(self, folder: str = ".") -> list[str]:
        base = _folder(folder)
        found = [one.name.removeprefix(base) for one in await self._below(base)]
        if base and not found:
            raise NotFound(f"there is no folder '{folder}'")
        return sorted(found)

    async def _below(self, folder: str) -> list[StoredObject]:
        """The files below a folder, by their paths in the workspace."""
        return [structs.replace(one, name=one.name.removeprefix(self._root))
                for one in await self._store.list(self._root + folder)]

    # -- changing -------------------------------------------------------------------------------------------------

    async def write(self, path: str, content: bytes) -> str:
        return await self.take(await self._draft(_once(content)), path)

    async def receive(self, chunks: AsyncIterator[bytes]) -> str:
        return await self._draft(self._counted(chunks))

    async def _draft(self, chunks: AsyncIterator[bytes]) -> str:
        draft = secrets.token_hex(12)
        await self._store.put(self._drafts + draft, chunks)
        return draft

    async def _counted(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in chunks:
            size += len(chunk)
            self._received += len(chunk)
            if size > self._bounds.file_bytes:
                raise TooLarge(f"a file may have {self._bounds.file_bytes} bytes")
            if self._received > self._bounds.total_bytes:
                raise TooLarge(f"a workspace holds {self._bounds.total_bytes} bytes")
            yield chunk

    async def take(self, draft: str, path: str) -> str:
        try:
            name = _name(path)
            async with self._lock:
                there = {one.name: one.size for one in await self._below("")}
                self._must_fit(name, there, (await self._store.open(self._drafts + draft)).size)
                await self._store.copy(self._drafts + draft, self._root + name)
            return name
        finally:
            await self.discard(draft)

    async def discard(self, draft: str) -> None:
        if DRAFT.fullmatch(draft):
            await self._store.remove(self._drafts + draft)

    async def pack(self, chunks: AsyncIterator[bytes]) -> FileContent:
        draft = await self._draft(chunks)
        return replace(await self._store.open(self._drafts + draft), discard=lambda: self.discard(draft))

    async def remove(self, path: str) -> None:
        async with self._lock:
            await _each(self._store.remove, [self._root + name for name in await self._known(path)])

    async def rename(self, path: str, new_name: str) -> str:
        if new_name in (".", "..") or "/" in new_name:
            raise Invalid(f"'{new_name}' is not a name", param="new_name")
        target = str(PurePosixPath(_name(path)).with_name(check_name(new_name)))
        async with self._lock:
            names = await self._known(path)
            await self._copy_all(names, _name(path), target)
            await _each(self._store.remove, [self._root + name for name in names])
        return target

    async def copy(self, path: str, to: str | None = None) -> str:
        """Copy a file or a folder, beside itself or to another place; a copy that fails leaves nothing."""
        source = _name(path)
        async with self._lock:
            names = await self._known(path)
            there = {one.name: one.size for one in await self._below("")}
            if to is None:
                beside = copy_names(PurePosixPath(source), is_folder=source not in names)
                target = next(name for name in map(str, beside) if not _is_there(name, there))
            else:
                target = _name(to)
            if target.startswith(f"{source}/"):
                raise Conflict(f"'{target}' is there already, or is inside what is copied")
            for name in names:
                moved = target + name.removeprefix(source)
                self._must_fit(moved, there, there[name])
                there[moved] = there[name]
            await self._copy_all(names, source, target)
        return target

    async def _copy_all(self, names: Collection[str], source: str, target: str) -> None:
        if _is_there(target, {one.name: one.size for one in await self._below(target)}):
            raise Conflict(f"'{target}' is there already, or is inside what is copied")
        targets = {name: target + name.removeprefix(source) for name in names}
        for name in targets.values():
            self._must_be_content(name)
        try:
            await _each(lambda name: self._store.copy(self._root + name, self._root + targets[name]), names)
        except BaseException:
            with suppress(Exception):
                await _each(self._store.remove, [self._root + name for name in targets.values()])
            raise

    async def _known(self, path: str) -> list[str]:
        """The files that a path stands for: one file, or all files of a folder."""
        name = _name(path)
        if not name:
            raise Invalid("the workspace itself stays as it is")
        found = [one.name for one in await self._below(name) if one.name == name or one.name.startswith(f"{name}/")]
        if not found:
            raise NotFound(f"there is no '{path}'")
        return found

    # -- room -----------------------------------------------------------------------------------------------------

    def _must_be_content(self, name: str) -> None:
        if not self._trusted and m.is_agent_configuration(name):
            raise Forbidden(f"agents read '{name}' as their configuration; clients may write such files only if the "
                            "server's config.yaml has `workspace: {trust: true}`")

    def _must_fit(self, name: str, there: dict[str, int], size: int) -> None:
        """Refuse a file where a folder is, or below a file, or beyond the limits."""
        if not name or any(one.startswith(f"{name}/") for one in there):
            raise Conflict(f"'{name or '.'}' is a folder")
        if any(str(parent) in there for parent in PurePosixPath(name).parents):
            raise Conflict(f"'{name}' is below a file, or is a folder")
        self._must_be_content(name)
        if size > self._bounds.file_bytes:
            raise TooLarge(f"a file may have {self._bounds.file_bytes} bytes")
        if len(there.keys() | {name}) > self._bounds.files:
            raise TooLarge(f"a workspace holds {self._bounds.files} files")
        if sum(there.values()) - there.get(name, 0) + size > self._bounds.total_bytes:
            raise TooLarge(f"a workspace holds {self._bounds.total_bytes} bytes")


def _name(path: str) -> str:
    return "/".join(path_components(path))


def _folder(path: str) -> str:
    return f"{name}/" if (name := _name(path)) else ""


def _is_there(name: str, there: Iterable[str]) -> bool:
    return any(one == name or one.startswith(f"{name}/") for one in there)


async def _each(work: Callable[[str], Awaitable[None]], names: Collection[str]) -> None:
    """Do it for all names, several at a time; the first error is raised when none is under way any more."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async with free:
            await work(name)

    for outcome in await asyncio.gather(*map(one, names), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
