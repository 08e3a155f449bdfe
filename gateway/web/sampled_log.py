"""Lines of the journal that anybody can cause: a few a minute of each event, and how many there were besides."""

import asyncio
from collections.abc import Callable
from typing import Any


class Sampled:
    """A logger that writes so many lines of each event a minute, and counts the others."""

    def __init__(self, log: Any, most: int = 5, seconds: float = 60.0) -> None:
        self._log = log
        self._most = most
        self._seconds = seconds
        self._seen: dict[str, tuple[float, int]] = {}

    def info(self, event: str, **fields: Any) -> None:
        self._write(self._log.info, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write(self._log.warning, event, fields)

    def _write(self, write: Callable[..., Any], event: str, fields: dict[str, Any]) -> None:
        """Write a line, or count it; `unwritten` tells how many there were in the minute before."""
        now = asyncio.get_running_loop().time()
        began, count = self._seen.get(event, (now, 0))
        if not 0 <= now - began < self._seconds:
            if count > self._most:
                fields["unwritten"] = count - self._most
            began, count = now, 0
        self._seen[event] = (began, count + 1)
        if count < self._most:
            write(event, **fields)
