"""Several processes on one port: they are started, started again, replaced one by one, and ended by their parent.

The workers of these tests are small programs that do what a worker must do for its parent; that the gateway does it as
well, and that no stream is torn, is shown by the proof `workers`.
"""

import asyncio
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway import worker_pool
from gateway.config import Config
from gateway.errors import Invalid
from gateway.http import Metrics
from gateway.worker import ENVIRONMENT, Assignment, Worker, WorkerMetrics
from gateway.worker_pool import WorkerPool, WorkerProcess, check_workers, listening_sockets, worker_count
from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401

WORKER = """
import json, os, signal, socket, sys
told = json.loads(os.environ["_DRAGOMAN_WORKER"])
folder = sys.argv[1]
if os.path.exists(f"{folder}/broken"):
    sys.exit(7)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
link, door = socket.socket(fileno=told["link"]), socket.socket(fileno=told["door"])
link.sendall(b'["worker %d"]\\n' % told["number"])
while True:
    asker, _ = door.accept()
    with asker:
        asker.sendall(b"%d %d" % (told["number"], os.getpid()))
"""
HANG = 60.0
"""Only something that hangs takes so many seconds."""


class LogEvents:
    """Stands in for the logger of the pool; a test waits for an event instead of looking again and again."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._changed = asyncio.Condition()

    def _log(self, event: str, **_: object) -> None:
        self._counts[event] += 1
        self._told = asyncio.get_running_loop().create_task(self._notify())

    info = error = _log

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, event: str) -> None:
        async with asyncio.timeout(HANG), self._changed:
            await self._changed.wait_for(lambda: self._counts[event] > 0)


class Parent:
    """A pool that runs in this process, and what it printed."""

    def __init__(self, folder: Path, settings: Callable[[], Config], count: int) -> None:
        self.folder, self.lines = folder, list[str]()
        command = [sys.executable, "-S", "-c", WORKER, str(folder)]
        self.pool = WorkerPool(settings(), count, settings, self.lines.append, command)
        self.task = asyncio.create_task(self.pool.run())

    @property
    def pids(self) -> list[int]:
        return [slot.current.pid if slot.current else 0 for slot in self.pool._slots]

    async def end(self) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return await asyncio.wait_for(self.task, HANG)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> LogEvents:
    events = LogEvents()
    monkeypatch.setattr(worker_pool, "log", events)
    return events


@pytest.fixture
def settings() -> Config:
    return Config.model_validate({
        "log": "redis://127.0.0.1:1/0", "port": 0, "agents": {"demo": {"backend": "demo"}}, "dialects": {"aap": None},
        "limits": {"drain_seconds": 1},
    })


@asynccontextmanager
async def parent(folder: Path, settings: Config, count: int = 2) -> AsyncIterator[Parent]:
    started = Parent(folder, lambda: settings, count)
    try:
        yield started
    finally:
        if not started.task.done():
            await started.end()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def ask(port: int) -> tuple[int, int]:
    """Which worker answers on the port: its number and its process id."""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG) as line:
        number, pid = line.makefile().read().split()
    return int(number), int(pid)


async def test_all_workers_serve_one_port(tmp_path: Path, settings: Config, events: LogEvents) -> None:
    async with parent(tmp_path, settings) as pool:
        await events.until("workers_ready")
        port = pool.pool._slots[0].door.getsockname()[1]
        seen = set()
        while len(seen) < 2:
            seen.add(await asyncio.to_thread(ask, port))
        assert seen == set(enumerate(pool.pids))
        assert pool.lines == ["worker 0", "workers: 2 processes serve the port; SIGHUP replaces them"]
        assert await pool.end() == 0


async def test_a_worker_that_dies_is_started_again_and_the_others_stay(
    tmp_path: Path, settings: Config, events: LogEvents,
) -> None:
    async with parent(tmp_path, settings) as pool:
        await events.until("workers_ready")
        first, second = pool.pids
        os.kill(second, signal.SIGKILL)
        await events.until("worker_restarted")
        assert pool.pids[0] == first
        assert pool.pids[1] != second


async def test_hangup_replaces_all_workers_and_ends_the_old_ones(
    tmp_path: Path, settings: Config, events: LogEvents,
) -> None:
    async with parent(tmp_path, settings) as pool:
        await events.until("workers_ready")
        before = pool.pids
        os.kill(os.getpid(), signal.SIGHUP)
        await events.until("workers_replaced")
        assert not set(pool.pids) & set(before)
        for pid in before:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


async def test_if_a_new_worker_does_not_start_the_old_ones_go_on(
    tmp_path: Path, settings: Config, events: LogEvents,
) -> None:
    async with parent(tmp_path, settings) as pool:
        await events.until("workers_ready")
        before = pool.pids
        (tmp_path / "broken").touch()
        await pool.pool._replace_all()
        assert pool.pids == before
        (tmp_path / "broken").unlink()
        await pool.pool._replace_all()
        assert not set(pool.pids) & set(before)


async def test_if_the_first_worker_does_not_start_the_parent_ends_with_its_code(
    tmp_path: Path, settings: Config,
) -> None:
    (tmp_path / "broken").touch()
    async with parent(tmp_path, settings) as pool:
        assert await asyncio.wait_for(pool.task, HANG) == 7
        assert pool.lines == []


async def test_signals_to_a_worker_that_ends_leave_it_its_exit_code() -> None:
    for _ in range(10):
        process = await asyncio.create_subprocess_exec(sys.executable, "-ISc", "import sys; sys.exit(7)")
        worker = WorkerProcess(1, process, *await _no_link())
        async with asyncio.timeout(HANG):
            while process.returncode is None:
                worker.signal(signal.SIGCONT)
                await asyncio.sleep(0)
        assert await worker.end() == 7


async def _no_link() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    ours, theirs = socket.socketpair()
    theirs.close()
    return await asyncio.open_unix_connection(sock=ours)


@pytest.mark.parametrize(("change", "reason"), [({"port": 1}, "port"), ({"log": "sqlite"}, "log")])
async def test_settings_that_workers_cannot_take_up_replace_nobody(
    tmp_path: Path, settings: Config, change: dict[str, object], reason: str,
) -> None:
    current = settings
    pool = WorkerPool(settings, 2, lambda: current, print, ["true"])
    assert pool._can_reload()
    current = settings.model_copy(update=change)
    assert not pool._can_reload(), reason


def test_a_log_of_one_process_is_refused_with_what_to_do(settings: Config) -> None:
    with pytest.raises(Invalid, match=r"`log: sqlite` is for one process; set `log: redis://"):
        check_workers(settings.model_copy(update={"log": "sqlite"}))
    check_workers(settings)


@pytest.mark.parametrize("wanted", ["0", "-1", "many", "257", "٣", ""])
def test_a_number_of_workers_that_is_none_is_refused(wanted: str) -> None:
    with pytest.raises(Invalid, match="a number from 1 to 256, or auto"):
        worker_count(wanted)


def test_auto_is_one_worker_per_core() -> None:
    assert worker_count("auto") == len(os.sched_getaffinity(0))
    assert worker_count("3") == 3


def test_a_port_that_is_in_use_is_refused_even_if_its_user_shares_it() -> None:
    doors = listening_sockets("127.0.0.1", 0, 2)
    try:
        with pytest.raises(OSError, match="in use"):
            listening_sockets("127.0.0.1", doors[0].getsockname()[1], 2)
    finally:
        for door in doors:
            door.close()


def assigned(folder: Path, number: int) -> Worker:
    ours, theirs = socket.socketpair()
    ours.close()
    return Worker(Assignment(number, socket.socket().detach(), theirs.detach(), str(folder)))


async def test_the_metrics_of_all_workers_are_read_from_any(tmp_path: Path) -> None:
    workers = [assigned(tmp_path, number) for number in range(2)]
    pages = [WorkerMetrics(worker) for worker in workers]
    for number, page in enumerate(pages):
        metrics = Metrics()
        metrics.count_events("aap", 10 * number + 1)
        await page.start(metrics.render)
    (tmp_path / "2.metrics").touch()  # a worker that is gone
    for page in pages:
        text = (await page.render_all()).decode()
        families = {family.name: family for family in text_string_to_metric_families(text)}
        counts = {sample.labels["worker"]: sample.value for sample in families["dragoman_events"].samples
                  if sample.name == "dragoman_events_total"}
        assert counts == {"0": 1.0, "1": 11.0}
    for page in pages:
        page.stop()


async def test_a_worker_in_the_place_of_another_takes_over_its_metrics(tmp_path: Path) -> None:
    old, new = WorkerMetrics(assigned(tmp_path, 0)), WorkerMetrics(assigned(tmp_path, 0))
    metrics = Metrics()
    await old.start(metrics.render)
    metrics = Metrics()
    metrics.count_events("aap", 5)
    await new.start(metrics.render)
    old.stop()
    assert b'dragoman_events_total{dialect="aap",worker="0"} 5.0' in await new.render_all()
    new.stop()


def test_programs_that_a_worker_starts_do_not_inherit_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:
    ours, theirs = socket.socketpair()
    given = Assignment(3, socket.socket().detach(), theirs.detach(), str(tmp_path))
    monkeypatch.setenv(ENVIRONMENT, given.environment()[ENVIRONMENT])
    worker = Worker.of_this_process()
    assert worker is not None and worker.number == 3
    assert ENVIRONMENT not in os.environ
    assert Worker.of_this_process() is None
    worker.report_ready(["hello"])
    with ours:
        assert ours.recv(100) == b'["hello"]\n'


async def test_a_worker_stops_when_its_parent_is_gone(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    worker = Worker(Assignment(0, socket.socket().detach(), theirs.detach(), str(tmp_path)))
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    try:
        worker.stop_with_parent()
        ours.close()
        await asyncio.wait_for(stopped.wait(), HANG)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
