"""A gateway that dies at any moment, under load in all dialects, breaks no promise; a careless one is found out."""

import signal
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import pytest

import gateway.model as m
from tests.prove.crash.history import Kind
from tests.prove.crash.kill_runs import judge_run
from tests.prove.crash.killable_server import records_in, show_before_it_is_stored
from tests.support.connection_faults import KillableServerInLoop
from tests.support.gateway_server import until


class Server:
    """A gateway in the loop of the test: whatever was not committed when it died is lost."""

    def __init__(self, folder: Path) -> None:
        self._mortal = KillableServerInLoop(folder, {})
        self.begin, self.close = self._mortal.start, self._mortal.close

    @property
    def address(self) -> str:
        return self._mortal.address

    async def start(self) -> None:
        if self._mortal.is_dead:
            await self._mortal.come_back()

    async def wait_ready(self) -> None:
        """It is ready when it has started."""

    async def end(self, number: signal.Signals) -> None:
        await self._mortal.die()

    async def until_written(self) -> None:
        wal = self._mortal.database.with_name("dragoman.db-wal")
        size = wal.stat().st_size
        await until(lambda: wal.stat().st_size != size)

    def logs(self, sessions: Iterable[str]) -> dict[str, Sequence[m.Record]]:
        return records_in(self._mortal.database, sessions)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Server]:
    made = Server(tmp_path)
    await made.begin()
    yield made
    await made.close()


async def test_nothing_is_lost_when_it_dies(served: Server) -> None:
    report = await judge_run(served, 4, seed=7, each=1, thinking=0.3)
    assert report.violations == [], str(report)
    assert report.running + report.waiting, f"turns ran, or waited for people, when it died: {report}"


async def test_a_server_that_shows_before_it_stores_is_found_out(
    served: Server, monkeypatch: pytest.MonkeyPatch,
) -> None:
    show_before_it_is_stored(monkeypatch)
    report = await judge_run(served, 4, seed=3, each=1, thinking=0.3)
    assert {violation.kind for violation in report.violations} & {Kind.LOST, Kind.GAP}, str(report)
