"""Workers that are forked after the collection: every test is run once and reported, however a worker ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.forked_workers import PORTION, portions
from tests.support.longest_first import LONGEST

ROOT = Path(__file__).parents[2]
MIXED = """\
import os
import pytest
@pytest.mark.parametrize("number", range(40))
def test_fits(number, tmp_path, capfd):
    print(number)
    assert capfd.readouterr().out == f"{number}\\n"
    assert tmp_path.parent.name in ("gw0", "gw1")
"""
FAILS = """\
def test_fails():
    print("what was printed")
    assert 1 == 2
"""
DIES = """\
import os
def test_dies():
    os._exit(7)
"""
WAITS = """\
import signal
import pytest
@pytest.fixture
def thing():
    yield
    print("put away", flush=True)
def test_waits(thing):
    print("begun", flush=True)
    signal.pause()
"""


def start(folder: Path, *words: str, **files: str) -> "subprocess.Popen[str]":
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.forked_workers", "--workers", "2",
               f"--rootdir={folder}", f"--basetemp={folder / 'temporary'}", "-p", "no:cacheprovider", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def test_every_test_is_run_and_reported(tmp_path: Path) -> None:
    run = start(tmp_path, f"--junit-xml={tmp_path / 'report.xml'}", mixed=MIXED, fails=FAILS)
    printed, _ = run.communicate(timeout=120)
    assert "1 failed, 40 passed" in printed
    assert "what was printed" in printed
    assert run.returncode == 1
    report = (tmp_path / "report.xml").read_text()
    assert 'failures="1"' in report
    assert 'tests="41"' in report


def test_a_test_in_which_a_worker_dies_has_failed(tmp_path: Path) -> None:
    run = start(tmp_path, a_dies=DIES, mixed=MIXED)
    printed, _ = run.communicate(timeout=120)
    assert "the worker that ran this ended with exit code 7" in printed
    assert "the worker that had taken this ended before it" in printed, "it had taken one portion ahead"
    assert f"{1 + PORTION} failed, {40 - PORTION} passed" in printed, "the other worker runs what is left"
    assert run.returncode == 1


def test_nothing_is_begun_after_the_first_failure_if_that_is_wanted(tmp_path: Path) -> None:
    later = "import pytest\n@pytest.mark.parametrize('number', range(2000))\ndef test_later(number): pass\n"
    run = start(tmp_path, "-x", a_fails=FAILS, later=later)
    printed, _ = run.communicate(timeout=120)
    assert "1 failed" in printed
    assert "2000 passed" not in printed
    assert run.returncode == 1


def test_whoever_interrupts_it_waits_for_the_workers(tmp_path: Path) -> None:
    run = start(tmp_path, "-s", waits=WAITS)
    assert run.stdout
    told = []
    for line in run.stdout:
        told.append(line)
        if line.endswith("begun\n"):
            run.send_signal(signal.SIGINT)
    assert "put away\n" in told
    assert run.wait(120) == 2


def test_portions_are_parts_of_one_file_and_long_tests_are_alone() -> None:
    long = next(iter(LONGEST))
    names = ["a"] * (PORTION + 1) + [long] * 2 + ["b"]
    items: Any = [SimpleNamespace(path=Path(f"tests/{name}.py")) for name in names]
    found = [list(part) for part in portions(items)]
    assert [number for part in found for number in part] == list(range(len(names)))
    assert [len(part) for part in found] == [PORTION, 1, 1, 1, 1]
