"""`make run` at a terminal and without: it serves, and whatever tells it to end, the server ends well."""

import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import process_family
from tests.support.chat.pty_terminal import terminal
from tests.support.child_commands import clean_environment

ROOT = Path(__file__).parents[1]
SECONDS = 300.0
"""What only something that hangs would need."""


def at_a_terminal(*command: str) -> tuple[int, int]:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs us may have ignored it
        os.execvp(command[0], command)
    return child, terminal


def read_until(terminal: int, word: bytes, seconds: float = SECONDS) -> bytes:
    seen, end = b"", time.monotonic() + seconds
    while word not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                came = os.read(terminal, 65536)
            except OSError:  # the other side has closed
                break
            if not came:
                break
            seen += came
    return seen


def port_of(greeting: bytes) -> int:
    found = re.search(rb"Dragoman serves .*:(\d+)", greeting)
    assert found, greeting
    return int(found[1])


def is_served(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def in_a_pipe(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command without a terminal, its output one pipe."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(SECONDS)
        assert process.stdout
        process.stdout.close()


def make_run(data: Path) -> tuple[str, ...]:
    return "make", "run", f"ARGS=--port 0 --data {data}"


PIP = """#!/bin/sh
echo "Obtaining file:///dragoman"
echo "Collecting aiohttp>=3.14 (from dragoman==0.1)"
echo "  Downloading aiohttp-3.14-cp311.whl (1.7 MB)"
echo "Requirement already satisfied: attrs>=17.3.0 in somewhere"
echo "Installing build dependencies: started"
echo "Installing collected packages: attrs, yarl, aiohttp"
echo "ERROR: no space left" >&2
exit CODE
"""


def installed(folder: Path, code: int) -> "subprocess.CompletedProcess[str]":
    """What is told while another program in the place of pip installs, and ends with this code."""
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(sys.executable)
    (folder / "bin/pip").write_text(PIP.replace("CODE", str(code)))
    (folder / "bin/pip").chmod(0o755)
    return subprocess.run(["make", f"VENV={folder}", f"{folder}/.run"], cwd=ROOT, env=clean_environment(),
                          capture_output=True, text=True, timeout=SECONDS)


def test_what_is_installed_is_told_meanwhile(tmp_path: Path) -> None:
    done = installed(tmp_path, 0)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"installing Dragoman into {tmp_path}", "  collecting aiohttp>=3.14 (from dragoman==0.1)",
        "  downloading aiohttp-3.14-cp311.whl (1.7 MB)", "  unpacking attrs, yarl, aiohttp",
    ]
    assert (tmp_path / ".run").exists()


def test_why_nothing_could_be_installed_is_told_whole(tmp_path: Path) -> None:
    done = installed(tmp_path, 1)
    assert done.returncode == 2
    assert "Requirement already satisfied" in done.stderr
    assert "ERROR: no space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".run").exists()


def test_ctrl_c_ends_the_server_well(tmp_path: Path) -> None:
    child, terminal = at_a_terminal(*make_run(tmp_path))
    port = port_of(read_until(terminal, b"/turns"))
    os.write(terminal, b"\x03")
    rest = read_until(terminal, b"no such words")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert not is_served(port)
    assert b"stopped" in rest, rest
    assert b"Traceback" not in rest
    assert os.waitstatus_to_exitcode(status) == -signal.SIGINT, "make ends as every make that was interrupted"


def test_make_told_to_end_ends_the_server_first(tmp_path: Path) -> None:
    with in_a_pipe(*make_run(tmp_path)) as make:
        assert make.stdout
        port = port_of(read_until(make.stdout.fileno(), b"/turns"))
        make.terminate()
        rest = read_until(make.stdout.fileno(), b"no such words")
        assert make.wait(SECONDS) == -signal.SIGTERM
    assert not is_served(port)
    assert b"stopped" in rest, rest


def test_a_terminal_that_is_closed_ends_the_server(tmp_path: Path) -> None:
    child, terminal = at_a_terminal("sh", "-c", f"{shlex.join(make_run(tmp_path))}; true")
    port = port_of(read_until(terminal, b"/turns"))
    members = [os.pidfd_open(pid) for pid in process_family(child)]
    os.close(terminal)
    os.waitpid(child, 0)  # the shell; it leaves before the server does
    for member in members:
        assert select.select([member], [], [], SECONDS)[0], "the server is still there"
        os.close(member)
    assert not is_served(port)


def test_so_it_does_without_make(tmp_path: Path) -> None:
    with terminal("serve", "--port", "0", "--data", str(tmp_path)) as screen:
        port = port_of(screen.wait_for("/turns").encode())
        screen.hang_up()
        assert screen.process.wait(SECONDS) >= 0, "it has ended by itself, though it could not say goodbye"
    assert not is_served(port)
