"""A full disk under a gateway harms nothing and is survived."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aiohttp import ClientSession

import gateway.model as m
from gateway.storage.log import SqliteLog
from tests.prove.crash.full_disk import survives
from tests.prove.crash.killable_server import records_in
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving, until

LONG = " and on" * 10_000
"""More than fits into the pages that a file has."""


class Small:
    """A gateway in the loop of the test, and a disk of which SQLite is told that it is full."""

    def __init__(self, served: Served, database: Path) -> None:
        self.address, self.database = served.address, database
        log = served.gateway.runtime.log
        assert isinstance(log, SqliteLog)
        self._writer = log._database._connections["write"]

    def logs(self, sessions: Iterable[str]) -> dict[str, Sequence[m.Record]]:
        return records_in(self.database, sessions)

    def fill(self) -> Callable[[], None]:
        most, = self._writer.execute("PRAGMA max_page_count").fetchone()
        self._writer.execute("PRAGMA max_page_count = 1")  # no less than there are
        return lambda: self._writer.execute(f"PRAGMA max_page_count = {most}")


async def test_a_full_disk_harms_nothing_and_is_survived(tmp_path: Path) -> None:
    async with serving(tmp_path, log="sqlite", dialects={name: {} for name in DIALECTS}) as served:
        small = Small(served, tmp_path / "data" / "dragoman.db")
        await survives(small, small.fill)


async def test_a_message_of_unknown_outcome_is_accepted_once_when_it_is_repeated_under_its_key(tmp_path: Path) -> None:
    async with serving(tmp_path, log="sqlite", dialects={"cas": {}}) as served, ClientSession() as client:
        small, base = Small(served, tmp_path / "data" / "dragoman.db"), f"{served.address}/api/v1/cloud/sessions"
        made = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}
        async with client.post(base, json=made) as response:
            session = (await response.json())["id"]

        async def say(words: str, key: str) -> int:
            message = {"type": "user.message", "content": [{"type": "text", "text": words + LONG}]}
            headers = {"Idempotency-Key": key}
            async with client.post(f"{base}/{session}/events", json={"events": [message]}, headers=headers) as response:
                return response.status

        free = small.fill()
        assert await say("once", "a") == 504, "nobody knows whether it will be stored"
        assert await say("once", "a") == 503
        assert await say("never", "b") == 503
        free()
        await until(lambda: served.gateway.runtime.log.write_error is None)
        assert await say("once", "a") == 202
        assert await say("once", "a") == 202
        accepted = [record.event.command for record in small.logs([session])[session]
                    if isinstance(record.event, m.InputAccepted)]
        said = [one.content for one in accepted if isinstance(one, m.SendMessage)]
        assert said == [(m.TextPart(text="once" + LONG),)]
