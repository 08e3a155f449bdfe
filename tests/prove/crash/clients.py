"""Clients of four dialects that talk while servers die, and watchers of what they say."""

import asyncio
from contextlib import suppress

from tests.prove.crash.client_base import BROKEN, CrashRun, DialectClient
from tests.support.dialects.aap.crash_client import AapCrashClient
from tests.support.dialects.blade.crash_client import BladeCrashClient, BladeListener
from tests.support.dialects.cas.crash_client import CasCrashClient, CasListener
from tests.support.dialects.zenflux.crash_client import ZenfluxCrashClient

__all__ = [
    "BROKEN",
    "CLIENTS",
    "CrashRun",
    "DialectClient",
    "Watcher",
]

CLIENTS: tuple[type[DialectClient], ...] = (AapCrashClient, CasCrashClient, BladeCrashClient, ZenfluxCrashClient)


class Watcher:
    """Hears sessions that others drive, in a dialect of its own, from where it left off."""

    def __init__(self, world: CrashRun, dialect: str) -> None:
        self.world = world
        self.dialect = dialect
        self.cas: dict[str, CasListener] = {}
        self.blade = BladeListener(world, "blade-watcher")

    async def live(self, sessions: list[str]) -> None:
        if not sessions:
            return
        if self.dialect == "blade":
            with suppress(*BROKEN):
                await self.blade.listen(*sessions)
            return
        ears = [self.cas.setdefault(session, CasListener(self.world, "cas-watcher")) for session in sessions]
        await asyncio.gather(*(_quietly(ear, session) for ear, session in zip(ears, sessions, strict=True)))


async def _quietly(ear: CasListener, session: str) -> None:
    with suppress(*BROKEN):
        await ear.listen(session)
