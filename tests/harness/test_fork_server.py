"""A process that is forked from a warm interpreter is like one that was started."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import fork_server
from tests.support.fork_server import Popen, for_shells

PYTHON = sys.executable


@pytest.mark.parametrize(("code", "ended"), [
    ("pass", (0, "", "")),
    ("import sys; sys.exit(3)", (3, "", "")),
    ("import sys; sys.exit('no')", (1, "", "no\n")),
    ("import atexit; atexit.register(print, 'bye'); print('hello')", (0, "hello\nbye\n", "")),
    ("import sys; print(sys.argv[1:], sys.stdin.read(), __name__)", (0, "['a', 'b'] in __main__\n", "")),
])
def test_it_does_what_it_is_told_and_ends_with_its_code(code: str, ended: tuple[int, str, str]) -> None:
    done = fork_server.run([PYTHON, "-c", code, "a", "b"], input="in")
    assert (done.returncode, done.stdout, done.stderr) == ended


def test_what_nobody_caught_is_told() -> None:
    done = fork_server.run([PYTHON, "-c", "1 / 0"])
    assert done.returncode == 1
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_it_has_its_own_folder_and_environment(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text("import os\nprint(os.getcwd(), os.environ.get('HERE'), os.environ.get('HOME'))\n")
    for words in (["told.py"], ["-c", "import runpy; runpy.run_path('told.py')"]):
        done = fork_server.run([PYTHON, *words], cwd=tmp_path, env={"HERE": "yes"})
        assert done.stdout == f"{tmp_path} yes None\n", done.stderr
    assert fork_server.run([PYTHON, "-m", "gateway", "--version"]).stdout.startswith("dragoman ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_hears_signals(number: signal.Signals) -> None:
    waits = "import signal; print('up', flush=True); signal.pause()"
    with Popen([PYTHON, "-c", waits], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.send_signal(number)
        assert process.wait(300) == -number


def test_a_terminal_is_its_own() -> None:
    ours, theirs = pty.openpty()
    code = "import os, sys; print(sys.stdout.isatty(), os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == os.getpid())"
    with Popen([PYTHON, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        assert process.wait(300) == 0
    assert os.read(ours, 100) == b"True True True\r\n"
    os.close(ours)
    os.close(theirs)


def test_in_a_shell_it_stands_for_the_interpreter() -> None:
    line = f"echo hello | {for_shells()} -c 'import sys; print(sys.stdin.read().upper()); sys.exit(7)'"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (7, "HELLO\n\n", "")
