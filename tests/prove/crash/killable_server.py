"""A server in a process of its own that is killed and started again, on the same port and data."""

import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

import gateway.model as m
from gateway.storage.log import open_log_file
from tests.support.dialect_tables import DIALECTS
from tests.support.fork_server import Popen
from tests.support.free_ports import free_port

ROOT = Path(__file__).parents[3]
HANG = 60.0
"""Seconds that only a hang takes."""
IN_MODIFY = 2
"""What Linux calls a change of a file."""
SETTINGS = {
    "dialects": {name: {} for name in DIALECTS},
    "agents": {"demo": {"backend": "demo"}},
    "limits": {"drain_seconds": 0.5},
    "logging": {"level": "warning", "format": "json"},
}
SERVE = "from gateway.cli import main; main()"
CARELESS = "from tests.prove.crash.killable_server import show_before_storing_main; show_before_storing_main()"


def show_before_storing_main() -> None:
    """`dragoman`, with a server that breaks the first promise."""
    from gateway.cli import main

    show_before_it_is_stored(pytest.MonkeyPatch())
    main()


def show_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    """Make servers break the first promise: to see that the judge notices."""
    from gateway.ports import NO_LISTENER
    from gateway.storage import Database
    from gateway.storage.log import SqliteLog

    append, committed, opens = SqliteLog.append, SqliteLog.committed, Database.open

    def show(log: SqliteLog, record: m.Record) -> None:
        append(log, record)
        log._listener.committed((record,))

    def say_nothing(log: SqliteLog) -> None:
        told, log._listener = log._listener, NO_LISTENER
        committed(log)
        log._listener = told

    async def slow(database: Database) -> None:
        database._window = 0.2
        await opens(database)

    patch.setattr(SqliteLog, "append", show)
    patch.setattr(SqliteLog, "committed", say_nothing)
    patch.setattr(Database, "open", slow)
    patch.setattr("gateway.storage.sqlite.database.FEW", 0)


class KillableProcess:
    """One data folder and one port; whoever serves them may die."""

    def __init__(
        self, folder: Path, *, careless: bool = False, packages: Path | None = None, within: Sequence[str] = (),
        **settings: object,
    ) -> None:
        self.folder = folder
        self.within = within
        """The words before the command, which run it somewhere else: `env`, `unshare` and the like."""
        self.packages = packages
        """The folder of another release, which is served at the next start; None: this tree."""
        self.errors = folder / "errors.txt"
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.database = folder / "data" / "dragoman.db"
        (folder / "config.yaml").write_text(yaml.safe_dump({**SETTINGS, "port": self.port, **settings}))
        self._code = CARELESS if careless else SERVE
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Begin, and do not wait until it is ready."""
        words = [sys.executable, "-c", self._code, "serve", "--config", str(self.folder / "config.yaml")]
        with self.errors.open("ab") as errors:
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": errors}
            if self.packages is None and not self.within:
                self._process = Popen(words, **streams)
            else:
                env = {**os.environ, "PYTHONPATH": str(self.packages or ROOT)}
                self._process = await asyncio.to_thread(
                    subprocess.Popen, [*self.within, *words], cwd=self.folder, env=env, **streams,
                )  # type: ignore[call-overload]

    async def wait_ready(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        greeting = await asyncio.to_thread(self._process.stdout.readline)
        assert greeting, f"the server did not come up: {self.errors.read_text()[-2000:]}"

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send the signal, and wait until the server is gone."""
        self.signal(number)
        await self.ended()

    async def ended(self) -> None:
        """Wait until the server is gone."""
        assert self._process is not None
        await asyncio.to_thread(self._process.communicate, timeout=HANG)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    async def until_written(self) -> None:
        """Wait until the server has written to its file."""
        await file_changed(self.database.with_name(f"{self.database.name}-wal"))

    def close(self) -> None:
        if self._process is not None and self.is_alive:
            self.signal(signal.SIGKILL)
            self._process.communicate(timeout=HANG)

    # -- what is in the file --------------------------------------------------------------------------------------

    def logs(self, sessions: Iterable[str]) -> dict[str, Sequence[m.Record]]:
        """The records of these sessions; of a dead server's file, a copy is read as it lies there."""
        if self.is_alive:
            return records_in(self.database, sessions)
        with TemporaryDirectory() as folder:
            for path in self.database.parent.glob(f"{self.database.name}*"):
                if not path.name.endswith(("-shm", ".lock")):
                    shutil.copy(path, folder)
            return records_in(Path(folder) / self.database.name, sessions)


async def file_changed(path: Path) -> None:
    """Wait for the next change of a file that another process writes."""
    system, loop = ctypes.CDLL(None), asyncio.get_running_loop()
    watch, changed = system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), asyncio.Event()
    system.inotify_add_watch(watch, os.fsencode(path), IN_MODIFY)
    loop.add_reader(watch, changed.set)
    try:
        await changed.wait()
    finally:
        loop.remove_reader(watch)
        os.close(watch)


def records_in(path: Path, sessions: Iterable[str]) -> dict[str, Sequence[m.Record]]:
    """What a file of ours has of these sessions."""
    if not path.exists():
        return {}
    with open_log_file(path) as file:
        found = {session: file.records(session) for session in sessions}
    return {session: records for session, records in found.items() if records}


@contextmanager
def server(folder: Path, *, careless: bool = False, **settings: object) -> Iterator[KillableProcess]:
    made = KillableProcess(folder, careless=careless, **settings)
    try:
        yield made
    finally:
        made.close()
