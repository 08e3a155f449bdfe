"""A server that is killed and started again, on the same port and data; a nursery keeps starts cheap by forking."""

import atexit
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import yaml

from gateway.log import log_file
from gateway.model import Record
from tests.ports import free_port

PATIENCE = 30.0
SETTINGS = {
    "dialects": {"aap": {}, "cas": {}, "zenflux": {}, "blade": {}},
    "agents": {"demo": {"backend": "demo"}},
    "limits": {"drain_seconds": 0.5},
    "journal": {"level": "warning", "format": "json"},
}


def nursery() -> None:
    """Has everything imported and the tables read; each line of words that comes in is run by a newborn child."""
    from gateway import parts
    from gateway.cli import main
    from tests.tables import DIALECTS, table

    __import__("gateway.serving")
    tables = {name: table(name) for name in DIALECTS}
    parts.load_table = lambda path, *_: tables[Path(path).stem]
    if "careless" in sys.argv:
        _show_before_it_is_stored()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        words, errors = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            told = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(told, 1)
            os.dup2(told, 2)
            sys.argv = ["dragoman", *words]
            main()
        print(child, flush=True)


def _show_before_it_is_stored() -> None:
    """A server that breaks the first promise: to see that the judge notices."""
    from gateway.log import SqliteLog
    from gateway.storage import Database

    append, committed, opens = SqliteLog.append, SqliteLog.committed, Database.open

    def show(log: SqliteLog, record: Record) -> None:
        append(log, record)
        log.on_commit((record,))

    def say_nothing(log: SqliteLog) -> None:
        told, log.on_commit = log.on_commit, lambda records: None
        committed(log)
        log.on_commit = told

    async def slow(database: Database) -> None:
        database._window = 0.2
        await opens(database)

    SqliteLog.append, SqliteLog.committed, Database.open = show, say_nothing, slow  # type: ignore[method-assign]


class Nursery:
    """The process that bears servers; one is enough for all servers of a run."""

    def __init__(self, *, careless: bool) -> None:
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.crash.server import nursery; nursery()", *["careless"][:careless]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked, self._told = self._process.stdin, self._process.stdout

    def bear(self, words: Sequence[str], errors: Path) -> int:
        """The process id of a newborn server."""
        with self._turn:
            self._asked.write(json.dumps([words, str(errors)]) + "\n")
            self._asked.flush()
            return int(self._told.readline())

    def close(self) -> None:
        self._asked.close()
        self._process.wait(PATIENCE)
        self._told.close()


@cache
def nursery_of_this_run(*, careless: bool = False) -> Nursery:
    """It goes when the process ends."""
    made = Nursery(careless=careless)
    atexit.register(made.close)
    return made


class Server:
    """One data folder and one port; whoever serves them may die."""

    def __init__(self, folder: Path, *, careless: bool = False, **settings: object) -> None:
        self.folder = folder
        self.errors = folder / "errors.txt"
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.database = folder / "data" / "dragoman.db"
        self.pid: int | None = None
        (folder / "config.yaml").write_text(yaml.safe_dump({**SETTINGS, "port": self.port, **settings}))
        self._nursery = nursery_of_this_run(careless=careless)

    def start(self) -> None:
        """Born, not yet ready."""
        words = ["serve", "--config", str(self.folder / "config.yaml")]
        self.pid = self._nursery.bear(words, self.errors)

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.address}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def wait_ready(self) -> None:
        until = time.monotonic() + PATIENCE
        while not self.is_ready():
            assert self.is_alive, f"the server did not come up: {self.errors.read_text()[-2000:]}"
            assert time.monotonic() < until, f"the server is not ready: {self.errors.read_text()[-2000:]}"
            time.sleep(0.01)

    @property
    def is_alive(self) -> bool:
        return self.pid is not None and Path(f"/proc/{self.pid}").exists()

    def signal(self, number: signal.Signals) -> None:
        assert self.pid is not None
        os.kill(self.pid, number)

    def wait_gone(self) -> None:
        until = time.monotonic() + PATIENCE
        while self.is_alive:
            assert time.monotonic() < until, f"the server does not go: {self.errors.read_text()[-2000:]}"
            time.sleep(0.002)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait_gone()

    def close(self) -> None:
        if self.is_alive:
            self.kill()

    # -- what is in the file --------------------------------------------------------------------------------------

    def logs(self, sessions: Iterable[str]) -> dict[str, Sequence[Record]]:
        """The records of these sessions; of a dead server's file, a copy is read as it lies there."""
        if self.is_alive:
            return _records(self.database, sessions)
        with TemporaryDirectory() as folder:
            for path in self.database.parent.glob(f"{self.database.name}*"):
                if not path.name.endswith(("-shm", ".lock")):
                    shutil.copy(path, folder)
            return _records(Path(folder) / self.database.name, sessions)


def _records(path: Path, sessions: Iterable[str]) -> dict[str, Sequence[Record]]:
    if not path.exists():
        return {}
    with log_file(path) as file:
        found = {session: file.records(session) for session in sessions}
    return {session: records for session, records in found.items() if records}


@contextmanager
def server(folder: Path, *, careless: bool = False, **settings: object) -> Iterator[Server]:
    made = Server(folder, careless=careless, **settings)
    try:
        yield made
    finally:
        made.close()
