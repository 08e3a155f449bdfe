"""Where differences are written: a line of JSON per turn in a file that does not grow for ever, and the journal."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog

from gateway.ports import Clock
from gateway.private_files import make_folder, private

log = structlog.get_logger("dragoman.shadow")

LARGEST = 64 * 1024 * 1024
"""A report of more bytes makes room for a new one; the last is kept beside it."""


class Reporter:
    """One file for all turns that were shadowed."""

    def __init__(self, path: Path, *, clock: Clock = time.time, largest: int = LARGEST) -> None:
        self.path, self._clock, self._largest = path, clock, largest
        self._lock = asyncio.Lock()

    async def tell(
        self, *, session_id: str, turn_id: str, agent: str, verdict: str, differences: Sequence[dict[str, Any]] = (),
        reason: str = "",
    ) -> None:
        """`verdict` is same, differs, failed or skipped."""
        line = {
            "at": self._clock(), "session_id": session_id, "turn_id": turn_id, "agent": agent, "verdict": verdict,
            **({"differences": list(differences)} if differences else {}), **({"reason": reason} if reason else {}),
        }
        if verdict in ("differs", "failed"):
            first = differences[0] if differences else reason
            log.warning(f"the shadow {verdict}", session=session_id, turn=turn_id, agent=agent, first=first)
        async with self._lock:
            try:
                await asyncio.to_thread(self._write, msgspec.json.encode(line) + b"\n")
            except OSError as error:
                log.error("the report of the shadow cannot be written", path=str(self.path), why=str(error))

    def _write(self, line: bytes) -> None:
        make_folder(self.path.parent)
        if self.path.exists() and self.path.stat().st_size + len(line) > self._largest:
            self.path.replace(self.path.with_suffix(".old" + self.path.suffix))
        with open(self.path, "ab", opener=private) as file:  # Path has no opener
            file.write(line)
