"""Clients of all dialects that talk while servers die, and watchers of what they say."""

import asyncio
from contextlib import suppress
from typing import Any, Protocol

from tests.prove.crash.client_base import BROKEN, CrashRun, DialectClient
from tests.support.dialect_parts import dialects_with, part

__all__ = [
    "BROKEN",
    "CrashRun",
    "DialectClient",
    "Watcher",
    "client_types",
    "watchers",
]


class CrashListener(Protocol):
    """Hears sessions that others drive, from where it left off; a `crash_client.py` may have one."""

    async def listen(self, *sessions: str) -> None: ...


def client_types() -> list[type[DialectClient]]:
    """The clients of all dialects that have one; which dialects are left out is printed."""
    return [part(name, "crash_client").CrashClient for name in dialects_with("crash_client")]


def watchers(world: CrashRun) -> list["Watcher"]:
    """One for each dialect whose clients can hear sessions that others drive."""
    modules = {name: part(name, "crash_client") for name in dialects_with("crash_client", lambda line: None)}
    return [Watcher(world, name, module.CrashListener) for name, module in modules.items()
            if hasattr(module, "CrashListener")]


class Watcher:
    """Hears sessions that others drive, in a dialect of its own, from where it left off."""

    def __init__(self, world: CrashRun, dialect: str, listener: Any) -> None:
        self.world = world
        self.dialect = dialect
        self._listener = listener
        self._ears: dict[tuple[str, ...], CrashListener] = {}

    async def live(self, sessions: list[str]) -> None:
        """Listen to all of them until the server dies."""
        groups = [tuple(sessions)] if self._listener.hears_many else [(session,) for session in sessions]
        await asyncio.gather(*(self._listen(group) for group in groups if group))

    async def _listen(self, sessions: tuple[str, ...]) -> None:
        key = () if self._listener.hears_many else sessions
        ear = self._ears.setdefault(key, self._listener(self.world, f"{self.dialect}-watcher"))
        with suppress(*BROKEN):
            await ear.listen(*sessions)
