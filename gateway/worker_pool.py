"""Several processes that serve one port: starts them, starts again what died, and replaces them one by one on SIGHUP.

    parent    makes one listening socket per worker (SO_REUSEPORT: the kernel divides the connections) and keeps all of
              them open, so that a connection that waits for a worker that ends is served by the next one in its place
    worker    `dragoman serve` again, with its socket and a link to the parent; it is one server of a cluster
"""

import asyncio
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory

import orjson

from gateway import logging
from gateway.config import Config
from gateway.errors import GatewayError, Invalid
from gateway.process_signals import on_sighup, stop_events
from gateway.worker import Assignment
from gateway.yaml_positions import Problems

log = logging.get_logger("dragoman.workers")

BACKLOG = 128
START_SECONDS = 120.0
"""A worker that is not ready after so many seconds is stuck."""
END_SECONDS = 30.0
"""A worker may take so many seconds more than `limits.drain_seconds` to end; then it is killed."""
EXIT_SECONDS = 10.0
"""A worker that gave up before it was ready may take so many seconds to exit; then it is killed."""
RESTART_SECONDS, MOST_RESTART_SECONDS = 0.25, 30.0
"""How long the parent waits before it starts a worker again; doubled each time that the worker dies young."""
STEADY_SECONDS = 60.0
"""A worker that has served so long is not young."""


class WorkerFailed(Exception):
    """A worker ended, or was stuck, before it was ready; it has printed why."""

    def __init__(self, number: int, code: int) -> None:
        super().__init__(f"worker {number} did not become ready (exit code {code})")
        self.code = code


def check_workers(config: Config) -> None:
    """Raise `Invalid` if several processes cannot serve these settings."""
    if not config.log.startswith("redis"):
        raise Invalid(
            f"several workers need a log that all of them can write, and `log: {config.log}` is for one process; "
            "set `log: redis://HOST:PORT/0` in the settings, or serve with one worker"
        )


def listening_sockets(host: str, port: int, count: int) -> list[socket.socket]:
    """So many sockets that listen on one address; the kernel divides new connections among them."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    doors: list[socket.socket] = []
    try:
        for _ in range(count):
            door = socket.socket(family, kind, protocol)
            doors.append(door)
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if not doors[:-1]:
                door.bind(address)  # without SO_REUSEPORT: a port that another server uses is an error
                address = door.getsockname()
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if doors[:-1]:
                door.bind(address)
            door.listen(BACKLOG)
    except OSError:
        for door in doors:
            door.close()
        raise
    return doors


class WorkerProcess:
    """One started worker."""

    def __init__(self, number: int, process: Process, link: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self.pid = process.pid
        self.lines: list[str] = []
        """What the worker would have printed."""
        self._process, self._link, self._writer = process, link, writer
        self._began = time.monotonic()

    @property
    def is_young(self) -> bool:
        return time.monotonic() - self._began < STEADY_SECONDS

    async def until_ready(self) -> None:
        exit_seconds = EXIT_SECONDS
        try:
            async with asyncio.timeout(START_SECONDS):
                line = await self._link.readline()
        except TimeoutError:
            line, exit_seconds = b"", 0.0
        if not line:
            raise WorkerFailed(self.number, await self.end_within(exit_seconds))
        self.lines = orjson.loads(line)

    async def end(self) -> int:
        """Wait for the end of the process; its exit code."""
        code = await self._process.wait()
        self._writer.close()
        return code

    async def end_within(self, seconds: float) -> int:
        try:
            async with asyncio.timeout(seconds):
                return await self.end()
        except TimeoutError:
            log.error("worker_killed", worker=self.number, pid=self.pid, reason="it did not end in time")
            self.signal(signal.SIGKILL)
            return await self.end()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process has not ended.

        `send_signal` of asyncio looks whether the process has ended, and takes its exit code away from those who wait.
        """
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)


class WorkerSlot:
    """The place of one worker: its number, its socket, and the process that serves it now."""

    def __init__(self, number: int, door: socket.socket, command: Sequence[str], folder: str) -> None:
        self.number, self.door = number, door
        self.current: WorkerProcess | None = None
        self.changing = asyncio.Lock()
        """Held while a worker is started here, by whoever restarts or replaces it."""
        self._command, self._folder = command, folder

    async def start(self) -> WorkerProcess:
        """Start a worker, and wait until it is ready; raises `WorkerFailed`."""
        ours, theirs = socket.socketpair()
        with theirs:
            given = Assignment(self.number, self.door.fileno(), theirs.fileno(), self._folder)
            process = await asyncio.create_subprocess_exec(
                *self._command, env={**os.environ, **given.environment()}, stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(given.door, given.link), process_group=0,  # Ctrl-C reaches the parent alone
            )
        worker = WorkerProcess(self.number, process, *await asyncio.open_unix_connection(sock=ours))
        try:
            await worker.until_ready()
        except asyncio.CancelledError:
            worker.signal(signal.SIGKILL)
            await worker.end()
            raise
        return worker


class WorkerPool:
    """The parent of the workers, until it gets a signal to stop."""

    def __init__(self, config: Config, count: int, read_settings: Callable[[], Config], announce: Callable[[str], None],
                 command: Sequence[str] | None = None) -> None:
        check_workers(config)
        self._config, self._count, self._read_settings, self._announce = config, count, read_settings, announce
        self._command = command or [sys.executable, *sys.orig_argv[1:]]
        self._slots: list[WorkerSlot] = []
        self._replaced: set[WorkerProcess] = set()
        """Workers that finish what they do while another one serves in their place."""

    async def run(self) -> int:
        """Serve until SIGINT or SIGTERM; the exit code. Raises `OSError` if it cannot listen."""
        stop, hurry = stop_events()
        doors = listening_sockets(self._config.host, self._config.port, self._count)
        try:
            with TemporaryDirectory(prefix="dragoman-workers-") as folder:
                self._slots = [WorkerSlot(number, door, self._command, folder) for number, door in enumerate(doors)]
                work = asyncio.create_task(self._serve())
                await asyncio.wait([work, stopped := asyncio.create_task(stop.wait())],
                                   return_when=asyncio.FIRST_COMPLETED)
                stopped.cancel()
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([work])
                codes = await self._end_all(hurry)
                if not work.cancelled() and (failure := work.exception()) is not None:
                    if isinstance(failure, WorkerFailed):
                        return failure.code or 1
                    raise failure
                return max(codes, key=abs, default=0)
        finally:
            for door in doors:
                door.close()

    async def _serve(self) -> None:
        first, *others = self._slots
        first.current = await first.start()  # a mistake in the settings is printed once, by this worker
        for line in [*first.current.lines, f"workers: {self._count} processes serve the port; SIGHUP replaces them"]:
            self._announce(line)
        for slot in others:
            slot.current = await slot.start()
        log.info("workers_ready", workers=self._count)
        due = asyncio.Event()
        with on_sighup(due.set):
            async with asyncio.TaskGroup() as tasks:
                for slot in self._slots:
                    tasks.create_task(self._keep_alive(slot))
                tasks.create_task(self._replace_when_due(due))

    async def _keep_alive(self, slot: WorkerSlot) -> None:
        """Start a worker again whenever it dies."""
        wait = RESTART_SECONDS
        while True:
            worker = slot.current
            assert worker is not None, "a slot is kept alive once its first worker serves"
            code = await worker.end()
            if slot.current is not worker:
                continue  # it was replaced
            log.error("worker_died", worker=slot.number, pid=worker.pid, code=code)
            wait = min(2 * wait, MOST_RESTART_SECONDS) if worker.is_young else RESTART_SECONDS
            async with slot.changing:
                while slot.current is worker:
                    await asyncio.sleep(wait)
                    try:
                        slot.current = new = await slot.start()
                    except WorkerFailed as failure:
                        wait = min(2 * wait, MOST_RESTART_SECONDS)
                        log.error("worker_not_started", worker=slot.number, error=str(failure), next_try=wait)
                    else:
                        log.info("worker_restarted", worker=slot.number, pid=new.pid)

    async def _replace_when_due(self, due: asyncio.Event) -> None:
        while True:
            await due.wait()
            due.clear()
            if self._can_reload():
                await self._replace_all()

    def _can_reload(self) -> bool:
        try:
            config = self._read_settings()
            check_workers(config)
        except (Problems, GatewayError, OSError) as error:
            log.error("reload_failed", problems=str(error))
            return False
        if (config.host, config.port) != (self._config.host, self._config.port):
            log.error("reload_failed", problems="'host' and 'port' cannot change while the server runs; restart it")
            return False
        self._config = config
        return True

    async def _replace_all(self) -> None:
        """Start a new worker in each place; when it serves, let the old one finish what it does, and end."""
        for slot in self._slots:
            async with slot.changing:
                old = slot.current
                assert old is not None, "workers are replaced once all of them serve"
                try:
                    slot.current = new = await slot.start()
                except WorkerFailed as failure:
                    log.error("reload_failed", worker=slot.number, problems=f"{failure}; the old workers go on")
                    return
            self._replaced.add(old)
            old.signal(signal.SIGTERM)
            code = await old.end_within(self._patience)
            self._replaced.discard(old)
            log.info("worker_replaced", worker=slot.number, pid=new.pid, old_pid=old.pid, old_code=code)
        log.info("workers_replaced", workers=self._count)

    @property
    def _patience(self) -> float:
        return self._config.limits.drain_seconds + END_SECONDS

    async def _end_all(self, hurry: asyncio.Event) -> list[int]:
        serving = [slot.current for slot in self._slots if slot.current is not None]
        workers = [*serving, *self._replaced]
        for worker in serving:
            worker.signal(signal.SIGTERM)

        async def pass_on_hurry() -> None:
            await hurry.wait()
            for worker in workers:
                worker.signal(signal.SIGTERM)

        hurrying = asyncio.create_task(pass_on_hurry())
        try:
            return list(await asyncio.gather(*(worker.end_within(self._patience) for worker in workers)))
        finally:
            hurrying.cancel()


def worker_count(wanted: str) -> int:
    """The number of workers that `--workers` names: a number, or `auto` for one per core that may be used."""
    if wanted == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wanted.isascii() or not wanted.isdecimal() or not 1 <= int(wanted) <= 256:
        raise Invalid(f"--workers {wanted}: give a number from 1 to 256, or auto (one per core)")
    return int(wanted)


def run_workers(
    config: Config, wanted: str, read_settings: Callable[[], Config], announce: Callable[[str], None],
) -> int:
    """Run the parent of as many workers as `--workers` names in this process; the exit code."""
    pool = WorkerPool(config, worker_count(wanted), read_settings, announce)
    logging.configure_logging(config.logging.format, config.logging.level)
    return asyncio.run(pool.run())
