"""`make run` at a terminal: it serves, and Ctrl-C ends it with exit code 0."""

import os
import pty
import select
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def at_a_terminal(*command: str) -> tuple[int, int]:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execvp(command[0], command)
    return child, terminal


def read_until(terminal: int, word: bytes, seconds: float) -> bytes:
    seen, end = b"", time.monotonic() + seconds
    while word not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # the other side has closed
                break
    return seen


def test_ctrl_c_ends_make_run_cleanly() -> None:
    child, terminal = at_a_terminal("make", "run", "ARGS=--port 0")
    seen = read_until(terminal, b"/turns", 50)
    assert b"Dragoman serves" in seen, seen
    os.write(terminal, b"\x03")
    rest = read_until(terminal, b"no such words", 10)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0, seen + rest
    assert b"Traceback" not in rest
