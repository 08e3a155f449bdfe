"""Several processes on one port: what a delta costs with two workers, compared with one, both on one Redis."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.load import concurrent_turns, warm_up
from bench.measure import BenchFailure, cpu_time
from bench.protocols import AapProtocol, burst
from bench.report import Row, at_least
from bench.scenarios.runner import Bench, alternate, client_row, compared
from bench.servers import Contender, free_port, gateway_command

TWO, ONE = "two workers", "one worker"
COLUMNS = (TWO, ONE)
READY_SECONDS = 30.0


def measure_workers(bench: Bench) -> Iterator[Row]:
    """Bursts of many turns; sessions belong to the worker that their client is connected to."""
    if shutil.which("redis-server") is None:
        bench.tell("workers: left out, because redis-server is not installed")
        return
    turns = max(bench.effort.burst)
    deltas, rounds = bench.effort.burst[turns]
    turns = min(turns, 100)
    bench.tell(f"workers: {turns} at once, {deltas} deltas each")
    talk, label = burst(deltas), f"{turns:,} × {deltas:,}"
    with redis_server(bench.folder, bench.cores.client) as (port, pid):
        contenders = [Contender(name, WorkersCommand(port, workers), AapProtocol(), has_family=True)
                      for name, workers in ((TWO, 2), (ONE, 1))]
        with bench.running(*contenders) as servers:
            warm_up(servers, talk)
            before = cpu_time(pid)
            found = alternate(servers, rounds, lambda server: concurrent_turns(server, turns, talk))
            spent = (cpu_time(pid) - before).cpu
    efficiency = {name: [1e6 / sample.cpu_micros for sample in samples] for name, samples in found.items()}
    rates = {name: [sample.rate for sample in samples] for name, samples in found.items()}
    yield compared("workers", f"{label}, by CPU", "deltas/CPU s", efficiency, at_least(0.9, "0.9 ×"))
    yield compared("workers", f"{label}, all on one core", "deltas/s", rates)
    yield client_row("workers", f"{label} client busy", found)
    bench.tell(f"workers: Redis took {1e6 * spent / (2 * rounds * turns * deltas):.1f} µs of CPU per delta")


class WorkersCommand:
    """Starts a gateway with so many workers on that Redis."""

    def __init__(self, redis: int, workers: int) -> None:
        self._redis, self._workers = redis, workers

    def __call__(self, folder: Path, port: int) -> Sequence[str]:
        log = f"redis://127.0.0.1:{self._redis}/{self._workers}"
        return [*gateway_command(folder, port, log), "--workers", str(self._workers)]


@contextmanager
def redis_server(folder: Path, core: int) -> Iterator[tuple[int, int]]:
    """A Redis without persistence on the client's core: its port and its process id."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
               "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                               preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    assert process.stdout is not None
    try:
        until = time.monotonic() + READY_SECONDS
        while "Ready to accept connections" not in (line := process.stdout.readline()):
            if not line or time.monotonic() > until:
                raise BenchFailure("redis-server did not start")
        yield port, process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
