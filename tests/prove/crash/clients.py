"""Clients of four dialects that talk while servers die, and watchers of what they say."""

import asyncio
from contextlib import suppress

from tests.prove.crash.aap_client import AapClient
from tests.prove.crash.blade_client import BladeClient, BladeEar
from tests.prove.crash.cas_client import CasClient, CasEar
from tests.prove.crash.conversation import BROKEN, Client, World
from tests.prove.crash.zenflux_client import ZenfluxClient

__all__ = ["BROKEN", "CLIENTS", "Client", "Watcher", "World"]

CLIENTS: tuple[type[Client], ...] = (AapClient, CasClient, BladeClient, ZenfluxClient)


class Watcher:
    """Hears sessions that others drive, in a dialect of its own, from where it left off."""

    def __init__(self, world: World, dialect: str) -> None:
        self.world = world
        self.dialect = dialect
        self.cas: dict[str, CasEar] = {}
        self.blade = BladeEar(world, "blade-watcher")

    async def live(self, sessions: list[str]) -> None:
        if not sessions:
            return
        if self.dialect == "blade":
            with suppress(*BROKEN):
                await self.blade.listen(*sessions)
            return
        ears = [self.cas.setdefault(session, CasEar(self.world, "cas-watcher")) for session in sessions]
        await asyncio.gather(*(_quietly(ear, session) for ear, session in zip(ears, sessions, strict=True)))


async def _quietly(ear: CasEar, session: str) -> None:
    with suppress(*BROKEN):
        await ear.listen(session)
