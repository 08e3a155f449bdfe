"""Run a command as a child process: its output goes to a file, its CPU time is counted, and nothing of it is left."""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from uuid import uuid4

MARK = "DRAGOMAN_COMMAND"
"""Every process that comes of a command has this in its environment, whoever started it."""
OF_MAKE = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ARGS", "ROOM"}
"""What make hands down, and what was meant for the target that was named."""
GRACE = 30.0
"""Seconds that an interrupted command has for putting its things away."""


@dataclass(frozen=True)
class CommandResult:
    """A command that has ended; `code` is None if it was ended because its time was over."""

    code: int | None
    seconds: float
    cpu: float


def cpu_seconds() -> float:
    """CPU time of this process and of all its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def clean_environment() -> dict[str, str]:
    """The environment without what make has handed down: a make that is started again begins anew."""
    return {name: value for name, value in os.environ.items() if name not in OF_MAKE}


class ChildCommand:
    """A running command; leaving the `with` block ends it, and whatever it has left behind."""

    def __init__(self, words: Sequence[str], *, cwd: Path, log: Path) -> None:
        self._mark = f"{os.environ.get(MARK, '')}/{uuid4().hex}"
        self._began, self._cpu_before = time.monotonic(), cpu_seconds()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                words, cwd=cwd, env={**clean_environment(), MARK: self._mark}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )

    def __enter__(self) -> "ChildCommand":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.end()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def wait(self, seconds: float) -> bool:
        """Whether the command ended within so many seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode is not None

    def end(self) -> CommandResult:
        """Interrupt the command if it still runs, kill whatever is left, and tell how it ended."""
        code = self._process.poll()
        if code is None:
            os.killpg(self._process.pid, signal.SIGINT)
            self.wait(GRACE)
        killed: set[int] = set()
        while left := self._left() - killed:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed |= left
        self._process.wait()
        return CommandResult(code, self.seconds, cpu_seconds() - self._cpu_before)

    def _left(self) -> set[int]:
        """The processes that came of this command and still run, in whatever session."""
        entry = f"{MARK}={self._mark}".encode()
        left = set()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if any(line.startswith(entry) for line in (folder / "environ").read_bytes().split(b"\0")):
                    left.add(int(folder.name))
        return left
