"""A child process in a group of its own, and a supervisor that starts it on demand and again after it has failed."""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import structlog

from gateway.client import redact
from gateway.errors import BackendFailed, GatewayError, Overloaded
from gateway.ports import Clock

log = structlog.get_logger("dragoman.acp")
INHERITED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM")
"""The variables of the gateway's environment that an agent gets; no keys are among them."""
GRACE_SECONDS = 3.0
"""How long a process may take to end after each signal."""
EXIT_REASON_SECONDS = 2.0
MAX_QUOTED_CHARS = 300
"""At most so many characters of a line of standard error are kept."""
MAX_LOGGED_LINES = 10_000
"""At most so many lines of standard error are logged."""


class ChildProcess:
    """A running process; made by `start`, and ended by `stop`."""

    def __init__(self, process: asyncio.subprocess.Process, secrets: Sequence[str]) -> None:
        self._process, self._secrets = process, secrets
        self._last_line = ""
        self._listening = asyncio.create_task(self._listen(), name=f"standard error of {process.pid}")

    @classmethod
    async def start(
        cls, command: str, args: Sequence[str], *, env: Mapping[str, str], folder: Path, secrets: Sequence[str] = (),
    ) -> "ChildProcess":
        inherited = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
        try:
            process = await asyncio.create_subprocess_exec(
                command, *args, env=inherited | dict(env), cwd=folder, start_new_session=True,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise BackendFailed(f"the agent's command '{command}' cannot be started: {why}") from None
        return cls(process, secrets)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdin(self) -> asyncio.StreamWriter:
        assert self._process.stdin is not None, "it was started with a pipe"
        return self._process.stdin

    @property
    def stdout(self) -> asyncio.StreamReader:
        assert self._process.stdout is not None, "it was started with a pipe"
        return self._process.stdout

    async def exit_reason(self) -> str:
        """How the process ended, and the last line of its standard error, without secrets."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_REASON_SECONDS):
                await self._process.wait()
                await asyncio.shield(self._listening)
        code = self._process.returncode
        how = "" if code is None else f" (signal {-code})" if code < 0 else f" (exit code {code})"
        return f"{how}: {self._last_line}" if self._last_line else how

    async def end(self) -> None:
        """Terminate the process, then kill it, with all processes that it started."""
        self.stdin.close()
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await self._process.wait()
        self._signal(signal.SIGKILL)
        await self._process.wait()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        # a grandchild that left the group may hold the pipes open: they are closed, and not waited for
        self._process._transport.close()  # type: ignore[attr-defined]  # there is no public way

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, which may outlive its first process."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _listen(self) -> None:
        """Log standard error line by line; long lines are cut, and lines beyond the limit are dropped."""
        assert self._process.stderr is not None, "it was started with a pipe"
        rest, lines_read = "", 0
        while chunk := await self._process.stderr.read(65536):
            *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
            rest = rest[:4 * MAX_QUOTED_CHARS]
            for line in filter(None, map(str.strip, lines)):
                lines_read += 1
                self._note(line, tell=lines_read <= MAX_LOGGED_LINES)
        if rest.strip():
            self._note(rest.strip(), tell=lines_read < MAX_LOGGED_LINES)

    def _note(self, line: str, *, tell: bool) -> None:
        self._last_line = redact(line, self._secrets)[:MAX_QUOTED_CHARS]
        if tell:
            log.debug("acp_stderr", process=self.pid, line=self._last_line)


MINUTE = 60.0


class SupervisedProcess(Protocol):
    """A running agent that may fail."""

    @property
    def broken(self) -> GatewayError | None: ...
    async def close(self) -> None: ...


Running = TypeVar("Running", bound=SupervisedProcess)


class ProcessSupervisor(Generic[Running]):
    """Runs one agent at a time; callers that come during its start wait for the same agent."""

    def __init__(self, start: Callable[[], Awaitable[Running]], per_minute: int, clock: Clock = time.monotonic) -> None:
        self._start, self._per_minute, self._clock = start, per_minute, clock
        self._starts: deque[float] = deque(maxlen=per_minute)
        self._running: Running | None = None
        self._why = ""
        self._lock = asyncio.Lock()

    @property
    def running(self) -> Running | None:
        """The running agent; None if there is none."""
        return self._running if self._running is not None and self._running.broken is None else None

    async def ready(self) -> Running:
        """The running agent, or a new one if it has failed."""
        async with self._lock:
            if self.running is not None:
                return self.running
            await self._end()
            self._count()
            try:
                self._running = await self._start()
            except GatewayError as error:
                self._why = error.message
                raise
            log.info("acp_agent_started", process=getattr(self._running, "pid", None))
            return self._running

    async def close(self) -> None:
        async with self._lock:
            await self._end()

    async def _end(self) -> None:
        ended, self._running = self._running, None
        if ended is not None:
            self._why = ended.broken.message if ended.broken is not None else ""
            await ended.close()

    def _count(self) -> None:
        now = self._clock()
        if len(self._starts) == self._per_minute and (left := self._starts[0] + MINUTE - now) > 0:
            raise Overloaded(
                f"the agent was started {self._per_minute} times within a minute; try again later"
                f"{f'; the last time: {self._why}' if self._why else ''}",
                details={"retry_after": max(1, round(left))},
            )
        self._starts.append(now)
