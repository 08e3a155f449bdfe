"""A machine that loses its power: what was announced and is gone afterwards is what the promises allow, no more.

| loss | what is promised |
|---|---|
| `sqlite` | `durability: normal`: what was not written back is gone, from some commit on; nothing is damaged |
| `second` | Redis with `appendfsync everysec`: the last second may be gone |
| `words` | that, and `durability: fsync`: every question to people and every end of a turn is there |
| `everything` | Redis without persistence: everything is gone, and the servers begin empty |

With `durability: fsync` in SQLite, or `appendfsync always` in Redis, nothing is lost: other worlds have these faults.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import gateway.model as m
from gateway.engine import SessionCommits
from tests.prove.crash.history import of_log
from tests.prove.simulation.servers import write_keys

if TYPE_CHECKING:
    from tests.prove.simulation.world import World

LOSSES = ("sqlite", "second", "words", "everything")
SECOND = 1.0
KEPT_EVENTS = (m.InputRequested, m.TurnEnded)
"""Events that clients see only after they are on the disk, with `durability: fsync`."""


class Announced(NamedTuple):
    """A record that a server has announced as stored."""

    at: float
    record: m.Record


class Announcements:
    """Every record that was announced, in order."""

    def __init__(self, world: "World") -> None:
        self.every: list[Announced] = []
        self._loop = world.loop

    @contextmanager
    def watching(self) -> Iterator[None]:
        announcements, before = self, SessionCommits.committed

        def committed(self: SessionCommits, records: Sequence[m.Record]) -> None:
            announcements.every += [Announced(announcements._loop.now, record) for record in records]
            before(self, records)

        with patch.object(SessionCommits, "committed", committed):
            yield

    def divided(self, logs: Mapping[str, Sequence[m.Record]]) -> tuple[list[Announced], list[Announced]]:
        """Those that are in the logs, and those that are not; of a session that was deleted nothing need be there."""
        kept = {(session, record.seq): record for session, records in logs.items() for record in records}
        deleted = {one.record.session_id for one in self.every if isinstance(one.record.event, m.SessionClosed)}
        there = [one for one in self.every if kept.get((one.record.session_id, one.record.seq)) == one.record]
        found = {id(one) for one in there}
        return there, [
            one for one in self.every if id(one) not in found and one.record.session_id not in deleted]


class LossDay:
    """Clients talk until the power is lost; then everything is started again and looked at."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._announcements = Announcements(world)
        self.watching = self._announcements.watching

    async def run(self) -> list[str]:
        world, loss = self._world, self._world.plan.loss
        await asyncio.sleep(world.plan.seconds)
        kept_until = await self._lose()
        before = len(self._announcements.every)
        await world.conversation.stop()
        await asyncio.sleep(0.5)
        await self._start()
        world.network.is_calm = True
        for server in world.servers:
            await server.is_ready.wait()
        await asyncio.sleep(4 * world.plan.lease + 5)
        logs, found = await world.conversation.survey(is_empty=loss == "everything")
        del self._announcements.every[before:]
        return [*map(str, found), *self.judge(logs, kept_until)]

    async def _lose(self) -> float:
        """Take the power away; return until when everything that was announced must be there."""
        world = self._world
        if world.redis is None:
            server = world.servers[0]
            server.write_back()
            await asyncio.sleep(world.loop.host.random.uniform(0.0, 2.0))
            server.lose_power(world.loop.host.random)
            return server.written_back_at
        world.redis.crash("nothing" if world.plan.loss == "everything" else "fsynced")
        return world.loop.now - SECOND

    async def _start(self) -> None:
        world = self._world
        if world.redis is None:
            world.servers[0].start()
            return
        world.redis.start()
        if world.plan.loss == "everything":  # keys are gone, too: somebody makes new ones, and starts the servers again
            await asyncio.sleep(4 * world.plan.lease + 5)
            for server in world.servers:
                server.kill()
                write_keys(server.database.parent)
                server.start()

    def judge(self, logs: Mapping[str, Sequence[m.Record]], kept_until: float) -> list[str]:
        """What is missing that must not be, and what is not in order."""
        loss, (there, missing) = self._world.plan.loss, self._announcements.divided(logs)
        if loss == "everything":
            return [f"{server.host} did not notice that Redis lost its data" for server in self._world.servers
                    if (f"server{server.number}", "redis_data_lost") not in self._world.logged]
        broken = [str(one) for session, records in logs.items() for one in of_log(session, records)]
        for one in missing:
            is_promised = one.at < kept_until or (loss == "words" and isinstance(one.record.event, KEPT_EVENTS))
            if is_promised:
                broken.append(f"record {one.record.seq} of {one.record.session_id} ({type(one.record.event).__name__}) "
                              f"was announced at {one.at:.3f}, and is gone; kept until {kept_until:.3f}")
        last = max((one.at for one in there), default=0.0)
        if loss == "sqlite" and any(one.at < last for one in missing):
            first = next(one for one in missing if one.at < last)
            broken.append(f"record {first.record.seq} of {first.record.session_id} is gone, which was stored at "
                          f"{first.at:.6f}, and something of {last:.6f} is there")
        return broken
