"""Stores imported sessions in the file of a SQLite log; no server may use the file meanwhile, other imports may."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import gateway.model as m
from gateway.errors import Conflict, GatewayError
from gateway.storage import Seal, StorageUnusable
from gateway.storage.log import LogFile, open_log_file, store_sessions

from .importer import StoredSession
from .past_records import ImportMark

Done = TypeVar("Done")
LOCK_SECONDS, LOCK_STEP = 10.0, 0.02
"""How long to wait for another import that stores something, and how often to look."""


class FileSessionStore:
    """See `SessionStore`. The file is locked only while something is stored."""

    def __init__(self, path: Path, seal: Seal, file: LogFile) -> None:
        self._path, self._seal, self._file = path, seal, file
        self._is_prepared = False
        """Whether the file was checked by this import."""

    async def find(self, session_id: str) -> StoredSession | None:
        return _find(self._file, session_id)

    async def store(self, sessions: Sequence[list[m.Record]]) -> Sequence[GatewayError | None]:
        async def store() -> Sequence[GatewayError | None]:
            stored = store_sessions(self._path, sessions, _may_replace, seal=self._seal, prepared=self._is_prepared)
            self._is_prepared = True
            return [None if is_stored else Conflict("the session is here already") for is_stored in stored]

        return await waiting_for_file(store)


async def waiting_for_file(work: Callable[[], Awaitable[Done]]) -> Done:
    """What the work returns; while another import has the file, the work is tried again, for some seconds."""
    loop = asyncio.get_running_loop()
    last = loop.time() + LOCK_SECONDS
    while True:
        try:
            return await work()
        except StorageUnusable:
            if loop.time() >= last:
                raise
        await asyncio.sleep(LOCK_STEP)


def _may_replace(file: LogFile, records: list[m.Record]) -> bool:
    found = _find(file, records[0].session_id)
    return found is not None and found.may_be_replaced(records)


def _find(file: LogFile, session_id: str) -> StoredSession | None:
    head, first = file.find(session_id), file.first_record(session_id)
    if head is None or first is None:
        return None
    return StoredSession(head.owner, head.head, ImportMark.of(first))


@contextmanager
def open_file_store(path: Path, seal: Seal) -> Iterator[FileSessionStore]:
    with open_log_file(path) as file:
        yield FileSessionStore(path, seal, file)
