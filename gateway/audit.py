"""The audit log: lines of JSON that say who created, changed, revoked and deleted what."""

import asyncio
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import orjson

from gateway import logging
from gateway.ports import Caller, Clock
from gateway.private_files import make_private_folder

log = logging.get_logger("dragoman.audit")

WAKE_SECONDS = 0.02
"""A server that is killed loses the lines of so many seconds, at most, of what it has answered."""
SERVER_CALLER = Caller(user="server")
"""The actor of what the server does by itself."""


class AuditLog:
    """Writes one line per event: `at`, `event`, `actor`, `key`, `address`, `target`.

    No line has contents of messages or secrets. The file is opened for each line, so that another program may rotate
    it. A thread writes, so that nobody waits for the disk. To wake it takes longer than all else that a line costs, so
    it is woken once for the lines of WAKE_SECONDS.
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None
        self._is_failing = False
        self._lines: deque[bytes] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def write(self, event: str, caller: Caller | None, target: str) -> None:
        """Write that the caller (the server itself, if None) did this."""
        who = caller or SERVER_CALLER
        line = audit_line(self._clock(), event, who.user, who.key, who.address, target)
        self._lines.append(line)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WAKE_SECONDS, self._wake)

    def _wake(self) -> None:
        self._timer = None
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "dragoman-audit")
        self._thread.submit(self._add_all)

    def _add_all(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        try:
            if lines:
                append_line(self._file, b"".join(lines))
        except OSError as error:
            if not self._is_failing:
                log.error("audit_not_written", file=str(self._file), error=error.strerror)
            self._is_failing = True
        else:
            self._is_failing = False

    def close(self) -> None:
        """Wait until all lines are written."""
        if self._timer is not None:
            self._timer.cancel()
            self._wake()
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None


def audit_line(at: float, event: str, actor: str, key: str, address: str, target: str) -> bytes:
    """Return the line; a lone surrogate, as in a path that is not UTF-8, becomes a question mark."""
    fields = {
        "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"), "event": event, "actor": actor,
        "key": key, "address": address, "target": target,
    }
    whole = {name: value.encode(errors="replace").decode() for name, value in fields.items()}
    return orjson.dumps(whole, option=orjson.OPT_APPEND_NEWLINE)


def append_line(file: Path, line: bytes) -> None:
    """Append one line, or several, in one write, so that several processes may use the same file."""
    make_private_folder(file.parent)
    opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(opened, line)
    finally:
        os.close(opened)


