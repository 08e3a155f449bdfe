"""A command that is run as a child: its time, and its end with all that came of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import child_commands
from tests.support.child_commands import ChildCommand

A_HANG = 60.0


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_the_end_of_a_command_tells_code_and_time(tmp_path: Path) -> None:
    work = "import sys; print(sum(range(1_000_000))); sys.exit(3)"
    with ChildCommand(program(work), cwd=tmp_path, log=tmp_path / "log") as command:
        assert command.wait(A_HANG)
        ended = command.end()
    assert ended.code == 3
    assert ended.cpu > 0
    assert ended.seconds > 0
    assert (tmp_path / "log").read_text() == "499999500000\n"


def test_a_command_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with ChildCommand(program("import signal; signal.pause()"), cwd=tmp_path, log=tmp_path / "log") as command:
        assert not command.wait(0)
        assert command.end().code is None


def test_a_command_that_ignores_an_interrupt_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "line")
    stubborn = ("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
                "line = open('line', 'w'); print('here', file=line, flush=True); signal.pause()")
    monkeypatch.setattr(child_commands, "GRACE", 0.0)
    with (ChildCommand(program(stubborn), cwd=tmp_path, log=tmp_path / "log"), (tmp_path / "line").open() as line):
        assert line.readline() == "here\n"
    assert not _processes_of(tmp_path)


def test_nothing_that_a_command_started_is_left(tmp_path: Path) -> None:
    """A process in a session of its own holds one end of a pipe: when the pipe ends, the process has."""
    os.mkfifo(tmp_path / "line")
    leaves_one = ("import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'], "
                  "stdout=open('line', 'w'), start_new_session=True)")
    with (ChildCommand(program(leaves_one), cwd=tmp_path, log=tmp_path / "log") as command,
          (tmp_path / "line").open() as line):
        assert command.wait(A_HANG)
        assert command.end().code == 0
        assert line.read() == ""


def test_a_command_within_a_command_is_ended_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(child_commands.MARK, "/outer")
    tells = program(f"import os; print(os.environ['{child_commands.MARK}'])")
    with ChildCommand(tells, cwd=tmp_path, log=tmp_path / "log") as command:
        assert command.wait(A_HANG)
    assert (tmp_path / "log").read_text().startswith("/outer/")


def test_what_make_hands_down_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-- ARGS=--sample")
    monkeypatch.setenv("ARGS", "--sample")
    monkeypatch.setenv("COLOUR", "red")
    environment = child_commands.clean_environment()
    assert "MAKEFLAGS" not in environment
    assert "ARGS" not in environment
    assert environment["COLOUR"] == "red"


def _processes_of(folder: Path) -> str:
    """The processes whose working folder this is."""
    listed = subprocess.run(["find", "/proc", "-maxdepth", "2", "-name", "cwd", "-lname", str(folder)],
                            capture_output=True, text=True)
    return listed.stdout
