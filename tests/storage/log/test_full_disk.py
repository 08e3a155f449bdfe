"""A full disk under a gateway harms nothing and is survived."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import gateway.model as m
from gateway.storage.log import SqliteLog
from tests.prove.crash.full_disk import survives
from tests.prove.crash.killable_server import records_in
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving


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
