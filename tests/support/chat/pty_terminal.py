"""A terminal for tests: a real program on a real pty, typed at and read from."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.support import fork_server

PATIENCE = 150.0
"""Seconds that only a program that hangs would need."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|\r")


class Terminal:
    """The program's own side is a terminal; this is the person's."""

    def __init__(self, process: "subprocess.Popen[bytes]", side: int) -> None:
        self.process, self._side = process, side
        self._read = bytearray()
        self._place = 0

    @property
    def seen(self) -> str:
        """All that was shown so far, without control codes."""
        return CONTROL.sub("", self._read.decode(errors="replace"))

    def wait_for(self, text: str) -> str:
        """Wait until this is shown, after what was waited for before; what was shown up to its end."""
        until = time.monotonic() + PATIENCE
        while (found := self.seen.find(text, self._place)) < 0:
            assert self._more(until), f"{text!r} never came; shown was:\n{self.seen[self._place:]}"
        before, self._place = self._place, found + len(text)
        return self.seen[before:self._place]

    def type(self, text: str) -> None:
        os.write(self._side, text.encode())

    def press_ctrl_c(self) -> None:
        """As the terminal does it: a signal to whoever is in front."""
        self.type("\x03")

    def hang_up(self) -> None:
        """Close the window: whoever is in front is told by a signal."""
        os.close(self._side)
        self._side = -1

    def code(self) -> int:
        """The exit code of the program, when it has ended; what it still says is read meanwhile."""
        until = time.monotonic() + PATIENCE
        while self._more(until):
            pass
        return self.process.wait(PATIENCE)

    def _more(self, until: float) -> bool:
        ready, _, _ = select.select([self._side], [], [], max(0.0, until - time.monotonic()))
        try:
            chunk = os.read(self._side, 65536) if ready else b""
        except OSError:  # the other side is closed
            chunk = b""
        self._read += chunk
        return bool(chunk)


@contextmanager
def terminal(*words: str) -> Iterator[Terminal]:
    """`dragoman` with these words, at a terminal of its own."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50", "PYTHONUNBUFFERED": "1"}
    process = fork_server.Popen(
        program(words), stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
    )
    os.close(theirs)
    person = Terminal(process, ours)
    try:
        yield person
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        if person._side >= 0:
            person.hang_up()


def program(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-c", "from gateway.cli import main; main()", *words]
