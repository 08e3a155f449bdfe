"""A data folder of the previous release is served by this one, with everything in it; and the ways back."""

import signal
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

import gateway.model as m
from tests.prove.crash.kill_runs import judge_run
from tests.prove.crash.killable_server import KillableProcess, records_in
from tests.prove.upgrade.releases import run_release

ROOT = Path(__file__).parents[3]


class UpgradedServer:
    """A server whose first start is one of the previous release; every later start is one of this release."""

    def __init__(self, folder: Path, previous: Path) -> None:
        self._process = KillableProcess(folder, packages=previous)
        self.address = self._process.address
        self.end, self.wait_ready = self._process.end, self._process.wait_ready
        self.until_written, self.close = self._process.until_written, self._process.close
        self.tables: list[int] = []
        """The version of the tables at the end of each server."""

    async def start(self) -> None:
        if self._process.database.exists():
            self.tables.append(tables_of(self._process.database))
            self._process.packages = None
        await self._process.start()

    def logs(self, sessions: Iterable[str]) -> dict[str, Sequence[m.Record]]:
        return self._process.logs(sessions)


def tables_of(database: Path) -> int:
    with closing(sqlite3.connect(database)) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_folder_of_the_previous_release_is_taken_up_with_everything_in_it(
    tmp_path: Path, previous: Path, number: signal.Signals,
) -> None:
    """Clients of all dialects talk with the previous release, lose it, and go on with this one."""
    server = UpgradedServer(tmp_path, previous)
    try:
        report = await judge_run(server, 2, seed=23, number=number)
    finally:
        server.close()
    assert report.violations == [], str(report)
    assert report.sessions > 0 and report.things > 100, str(report)
    assert (server.tables[0], max(server.tables)) == (4, 5), "the previous release has written first"


@pytest.mark.timeout(900)
async def test_the_previous_release_refuses_a_folder_of_this_one_and_takes_an_export_of_it(
    tmp_path: Path, previous: Path,
) -> None:
    server, back = KillableProcess(make(tmp_path / "new")), KillableProcess(make(tmp_path / "old"), packages=previous)
    report = await judge_run(server, 1, seed=24, number=signal.SIGTERM, each=1)
    assert report.violations == [], str(report)
    before = sha256(server.database.read_bytes()).digest()
    refused = run_release(previous, "serve", "--config", "config.yaml", cwd=server.folder)
    assert refused.returncode != 0 and "was written by a newer Dragoman" in refused.stderr, refused
    assert sha256(server.database.read_bytes()).digest() == before, "it was not touched"
    export = tmp_path / "sessions.jsonl"
    for packages, *words in ((ROOT, "export", "--out", export, "--data", server.database.parent),
                             (previous, "import", export, "--data", back.database.parent)):
        done = run_release(packages, "log", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(server.database)) as file:
        sessions = [row[0] for row in file.execute("SELECT session_id FROM sessions")]
    assert tables_of(back.database) == 4
    assert len(sessions) == report.sessions > 0
    assert records_in(back.database, sessions) == records_in(server.database, sessions)
    try:
        await back.start()
        await back.wait_ready()
        await back.end(signal.SIGTERM)
    finally:
        back.close()


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder
