"""Ctrl-C: remembered at once, raised only where somebody asks for it or reads what a person types.

Where a person's words come from: a terminal with its line editing, or lines of a pipe.
"""

import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from select import select
from types import FrameType
from typing import Any, Protocol, TextIO, TypeVar

from gateway.errors import TimedOut

T = TypeVar("T")
ALARM_SECONDS = 0.2
"""So long at most a signal is not heard that came just before a read began."""


class InterruptPressed(Exception):
    """Somebody pressed Ctrl-C."""


class InterruptWatcher:
    """Takes the place of the usual handler for as long as it is entered.

    A handler that raises can raise between any two instructions, also while a lock is taken or released, and leaves the
    lock broken. So this handler only counts. `wait` sleeps on a socket to which the system itself writes when a signal
    comes, and raises `InterruptPressed` by itself. Only `read_interruptibly` has the handler raise, because nothing
    else ends a read of a terminal; no code of ours runs within it but the call that reads. A signal that comes after
    the last instruction before the read begins does not end the read: an alarm that rings now and then has the handler
    called all the same.
    """

    def __init__(self, *, is_last: bool = False) -> None:
        """`is_last`: the process ends after this, and a Ctrl-C that comes even later changes nothing any more."""
        self._is_last = is_last
        self._count = 0
        self._is_reading = False
        self._before: dict[signal.Signals, signal._HANDLER] = {}
        self._before_fd = -1

    def __enter__(self) -> "InterruptWatcher":
        self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._ring)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _ignore_alarm)
        self._near, self._far = socket.socketpair()
        for end in (self._near, self._far):
            end.setblocking(False)
        self._before_fd = signal.set_wakeup_fd(self._far.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *exc: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before[signal.SIGALRM])
        signal.signal(signal.SIGINT, signal.SIG_IGN if self._is_last else self._before[signal.SIGINT])
        signal.set_wakeup_fd(self._before_fd)
        for end in (self._near, self._far):
            end.close()

    def check(self) -> None:
        """Raise `InterruptPressed` if Ctrl-C was pressed and nobody has been told; one pressed twice is told twice."""
        if self._count:
            self._count -= 1
            raise InterruptPressed

    def wait(self, future: "Future[T]", seconds: float | None = None) -> T:
        """The result of the future. Raises `InterruptPressed` if Ctrl-C is pressed, or was pressed and not told."""
        self.check()
        future.add_done_callback(self._wake)
        end = float("inf") if seconds is None else time.monotonic() + seconds
        while not future.done():
            left = end - time.monotonic()
            if left <= 0:
                raise TimedOut("the server did not answer in time")
            select([self._near], [], [], None if seconds is None else left)
            with suppress(BlockingIOError):
                self._near.recv(4096)
            self.check()
        return future.result()

    def read_interruptibly(self, read: Callable[[], T]) -> T:
        """What `read` returns; Ctrl-C raises `InterruptPressed`, and so does one that was pressed and not told."""
        self._is_reading = True
        try:
            self.check()
            signal.setitimer(signal.ITIMER_REAL, ALARM_SECONDS, ALARM_SECONDS)
            return read()
        finally:
            self._is_reading = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._is_reading:
            self._is_reading = False
            raise InterruptPressed
        self._count += 1

    def _wake(self, future: "Future[Any]") -> None:
        with suppress(OSError):  # full: it wakes without us; closed: nobody waits any more
            self._far.send(b"\0")


def _ignore_alarm(number: int, frame: FrameType | None) -> None:
    """That it is called is enough."""


class Prompt(Protocol):
    """Asks a person. Raises `EOFError` where nobody answers, `InterruptPressed` where Ctrl-C was the answer."""

    def read(self, label: str) -> str: ...


class TerminalPrompt:
    """A person at a terminal; lines can be edited, and earlier ones be had again."""

    def __init__(self, bell: InterruptWatcher) -> None:
        self._bell = bell
        try:
            import readline
        except ImportError:
            return  # a terminal without line editing is still one
        readline.parse_and_bind("set enable-bracketed-paste on")  # libedit, which has none, does not mind

    def read(self, label: str) -> str:
        return self._bell.read_interruptibly(lambda: input(label))


class LinePrompt:
    """A file or a pipe: each line is what somebody would have typed."""

    def __init__(self, bell: InterruptWatcher, lines: TextIO) -> None:
        self._bell, self._lines = bell, lines

    def read(self, label: str) -> str:
        line = self._bell.read_interruptibly(self._lines.readline)
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
