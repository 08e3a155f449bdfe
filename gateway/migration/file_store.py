"""Stores imported sessions in the file of a SQLite log; no server may use the file meanwhile, other imports may."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import gateway.model as m
from gateway.storage import Seal, StorageUnusable
from gateway.storage.log import LogFile, open_log_file, store_sessions

from .importer import StoredSession
from .past_records import ImportMark

LOCK_SECONDS, LOCK_STEP = 10.0, 0.02
"""How long to wait for another import that stores something, and how often to look."""


class FileSessionStore:
    """See `SessionStore`. The file is locked only while something is stored."""

    def __init__(self, path: Path, seal: Seal, file: LogFile) -> None:
        self._path, self._seal, self._file = path, seal, file

    async def find(self, session_id: str) -> StoredSession | None:
        head, first = self._file.find(session_id), self._file.first_record(session_id)
        return StoredSession(head.head, ImportMark.of(first)) if head is not None and first is not None else None

    async def store(self, sessions: Sequence[list[m.Record]]) -> Sequence[bool]:
        loop = asyncio.get_running_loop()
        last = loop.time() + LOCK_SECONDS
        while True:
            try:
                return store_sessions(self._path, sessions, self._may_replace, seal=self._seal)
            except StorageUnusable:
                if loop.time() >= last:
                    raise
            await asyncio.sleep(LOCK_STEP)

    def _may_replace(self, stored: LogFile, records: list[m.Record]) -> bool:
        """Whether the stored session is an earlier import of this one, which has not gone on here."""
        session_id = records[0].session_id
        first, ours = stored.first_record(session_id), ImportMark.of(records[0])
        theirs = ImportMark.of(first) if first is not None else None
        if theirs is None or ours is None or stored.head(session_id).head != theirs.head:
            return False
        return theirs.session_id == ours.session_id and (ours.updated_at or 0.0) > (theirs.updated_at or 0.0)


@contextmanager
def open_file_store(path: Path, seal: Seal) -> Iterator[FileSessionStore]:
    with open_log_file(path) as file:
        yield FileSessionStore(path, seal, file)
