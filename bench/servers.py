"""The servers under test, each in a process of its own on the servers' core."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from pathlib import Path
from types import TracebackType

from adapters import known_dialects

from .client import fetch
from .measure import BenchFailure, CpuTime, cpu_time, process_family, rss_bytes
from .protocols import PAUSE, AapProtocol, LoadProtocol, Workload, post

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 120.0
GET = "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
READYZ = GET.format("/readyz").encode()
SETTINGS = """\
log: {log}
data: {data}
dialects: {dialects}
agents: {{demo: {{backend: demo}}}}
telemetry: {telemetry}
"""

Command = Callable[[Path, int], Sequence[str]]
"""(an empty folder, a port) → the command to execute."""


ONE_DIALECT = "{aap: {mount: /aap}}"


def gateway_command(
    folder: Path, port: int, log: str = "memory", dialects: str = ONE_DIALECT, telemetry: str = "{}",
) -> Sequence[str]:
    settings = folder / f"bench-{port}.yaml"
    settings.write_text(SETTINGS.format(log=log, data=f"data-{port}", dialects=dialects, telemetry=telemetry))
    start = "from gateway.cli import main; main()"
    return [sys.executable, "-c", start, "serve", "--config", str(settings), "--port", str(port)]


def durable_command(folder: Path, port: int) -> Sequence[str]:
    return gateway_command(folder, port, "sqlite")


def every_dialect_command(folder: Path, port: int, log: str = "sqlite") -> Sequence[str]:
    dialects = ", ".join(f"{name}: {{}}" for name in known_dialects())
    return gateway_command(folder, port, log, f"{{{dialects}}}")


def baseline_command(folder: Path, port: int) -> Sequence[str]:
    return [sys.executable, "-m", "bench.baseline", str(port)]


@dataclass(frozen=True)
class Contender:
    """A column of the table: its name, how it is started, and its protocol."""

    name: str
    command: Command
    protocol: LoadProtocol
    needs_script: bool = False
    """Whether it plays scripts that it must be taught first."""
    ready_at: str = "/readyz"
    """The path that it answers with 200 as soon as it is ready."""
    ready_seconds: float = READY_SECONDS
    has_family: bool = False
    """Whether it has several processes, which are measured together."""
    environment: Mapping[str, str] = field(default_factory=dict)


DRAGOMAN = Contender("dragoman", gateway_command, AapProtocol())
BARE = Contender("bare aiohttp", baseline_command, AapProtocol(), needs_script=True)
DURABLE = Contender("durable", durable_command, AapProtocol())
"""The gateway with the default log; the column `dragoman` has the memory log."""
EVERY_DIALECT = Contender("every dialect", every_dialect_command, AapProtocol())
"""The gateway with the default log and all dialects."""

ALL_IN_MEMORY = Contender("dragoman", partial(every_dialect_command, log="memory"), AapProtocol())
"""The gateway with the log in memory and all dialects."""


def prefilled(path: Path) -> Contender:
    """The gateway with all dialects on a log that has sessions already."""
    return Contender("every dialect", partial(every_dialect_command, log=f"sqlite:{path}"), AapProtocol())


OFTEN_EXPORTED = {"OTEL_BSP_SCHEDULE_DELAY": "1000"}
"""Spans are sent each second, so that sending them is part of what is measured."""


def traced(collector: str) -> Contender:
    """The gateway with the log in memory, which sends its spans to a collector each second."""
    telemetry = f'{{otlp: "{collector}"}}'
    return Contender("traced", partial(gateway_command, telemetry=telemetry), AapProtocol(),
                     environment=OFTEN_EXPORTED)


CONTENDERS = (DRAGOMAN, BARE)
"""The first column is the gateway; ratios are to the second."""


class Server:
    """A running server; leaving the `with` block stops it."""

    def __init__(self, contender: Contender, folder: Path, core: int) -> None:
        self.contender = contender
        self.wire = contender.protocol
        self.port = free_port()
        self._errors = folder / f"{contender.name.replace(' ', '-')}-{self.port}.err"
        started = time.perf_counter()
        self._process = self._spawn(contender.command(folder, self.port), core)
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._await_ready(started + contender.ready_seconds)
            undo.pop_all()
        self.seconds_to_ready = time.perf_counter() - started

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        died = self._process.poll()
        self.stop()
        if died is not None:
            raise BenchFailure(f"{self.contender.name} died with code {died}\n{self._last_words()}") from error

    def stop(self) -> None:
        """Stop it and all processes that it has started: they form a group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def spent(self) -> CpuTime:
        return reduce(add, map(cpu_time, self._pids()))

    def rss(self) -> int:
        return sum(map(rss_bytes, self._pids()))

    def _pids(self) -> Sequence[int]:
        return process_family(self._process.pid) if self.contender.has_family else [self._process.pid]

    def load_script(self, talk: Workload, body: bytes) -> None:
        """Teach a bare server a body, event by event, with the pauses of the workload."""
        left, script = talk.paced, list[tuple[float, str]]()
        for event in self.wire.events(body):
            is_paced = left > 0 and self.wire.delta_mark in event
            left -= is_paced
            script.append((PAUSE if is_paced else 0.0, event.decode()))
        if fetch(self.port, post("/script", {"message": talk.message, "script": script})).status != 200:
            raise BenchFailure(f"{self.contender.name} did not learn {talk.message}")

    def _spawn(self, command: Sequence[str], core: int) -> subprocess.Popen[bytes]:
        with self._errors.open("wb") as errors:
            return subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                env=_environment() | dict(self.contender.environment), start_new_session=True,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )

    def _await_ready(self, until: float) -> None:
        while time.perf_counter() < until:
            if self._process.poll() is not None:
                raise BenchFailure(f"{self.contender.name} did not start\n{self._last_words()}")
            if self._is_ready():
                return
            time.sleep(0.002)
        raise BenchFailure(f"{self.contender.name} was not ready in time\n{self._last_words()}")

    def _is_ready(self) -> bool:
        try:
            return fetch(self.port, GET.format(self.contender.ready_at).encode()).status == 200
        except (OSError, BenchFailure):
            return False

    def _last_words(self) -> str:
        return "\n".join(self._errors.read_text(errors="replace").splitlines()[-20:])


def _environment() -> dict[str, str]:
    """The environment without settings for another server; what was compiled once is kept for the next start."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith("DRAGOMAN_") and name != "PYTHONDONTWRITEBYTECODE"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
