"""Reads lines from a terminal or a pipe, and delivers Ctrl-C only where the program waits or reads."""

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
"""The longest time, in seconds, until a signal that arrived just before a read is noticed."""


class InterruptPressed(Exception):
    """The user pressed Ctrl-C."""


class InterruptWatcher:
    """Replaces the handler of Ctrl-C while it is entered.

    A handler that raises can raise between any two instructions, even while a lock is taken or released, and leaves the
    lock broken. So this handler only counts. `wait` sleeps on a socket to which the system writes when a signal
    arrives, and raises `InterruptPressed` itself. Only `read_interruptibly` makes the handler raise, because nothing
    else ends a read of a terminal; within it no code of ours runs but the call that reads. A signal that arrives after
    the last instruction before the read does not end the read: a periodic alarm makes Python call the handler all the
    same.
    """

    def __init__(self, *, is_last: bool = False) -> None:
        """Make a watcher; `is_last` says that the process ends afterwards, so that a later Ctrl-C is ignored."""
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
        """Raise `InterruptPressed` for each Ctrl-C that was not delivered yet."""
        if self._count:
            self._count -= 1
            raise InterruptPressed

    def wait(self, future: "Future[T]", seconds: float | None = None) -> T:
        """Return the result of the future; Ctrl-C, also one not delivered yet, raises `InterruptPressed`."""
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
        """Return what `read` returns; Ctrl-C, also an earlier one that was not delivered, raises `InterruptPressed`."""
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
        with suppress(OSError):  # if it is full, the reader wakes anyway; if it is closed, nobody waits
            self._far.send(b"\0")


def _ignore_alarm(number: int, frame: FrameType | None) -> None:
    """Do nothing: the signal only has to wake the interpreter."""


class Prompt(Protocol):
    """Asks a person for a line. Raises `EOFError` at the end of the input, `InterruptPressed` for Ctrl-C."""

    def read(self, label: str) -> str: ...


class TerminalPrompt:
    """Reads lines of a person at a terminal, with line editing and history."""

    def __init__(self, interrupts: InterruptWatcher) -> None:
        self._interrupts = interrupts
        try:
            import readline
        except ImportError:
            return  # a terminal without line editing still works
        readline.parse_and_bind("set enable-bracketed-paste on")  # libedit does not know this setting and ignores it

    def read(self, label: str) -> str:
        return self._interrupts.read_interruptibly(lambda: input(label))


class LinePrompt:
    """Reads lines of a file or a pipe."""

    def __init__(self, interrupts: InterruptWatcher, lines: TextIO) -> None:
        self._interrupts, self._lines = interrupts, lines

    def read(self, label: str) -> str:
        line = self._interrupts.read_interruptibly(self._lines.readline)
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
