"""The proof of steadiness runs `make test` again and again, and stops at the first run that is not green."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.prove.steadiness import __main__ as steadiness
from tests.prove.steadiness.__main__ import Tree, busy, order
from tests.prove.steadiness.kept_rows import KeptRows
from tests.support.interpreters import installed, version_of

ROOT = Path(__file__).parents[2]
GREEN = "venv:\n\ntest:\n\t@echo '12,345 tests passed'; echo '3 min 05 s, 5 min 07 s of CPU (all)'\n"
RED_FROM_THE_SECOND_RUN = "venv:\n\ntest:\n\t@mkdir once || { echo 'test_x FAILED'; exit 1; }\n"
VERSION = "{}.{}".format(*sys.version_info)


def repository(folder: Path, makefile: str) -> Path:
    (folder / "Makefile").write_text(makefile)
    (folder / ".gitignore").write_text(".prove\n")
    for words in (["init"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-m", "x"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder


def test_green_runs_make_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, GREEN)
    assert steadiness.main(["--runs", "2", "--busy", "1", "--python", sys.executable], root) == 0
    printed = capsys.readouterr().out
    assert f"run 1 of 2: Python {VERSION}, 0 busy processes" in printed
    *_, first, second = printed.splitlines()
    assert first.startswith(f"| 1 | {VERSION} | 0 | 0 | green | 12,345 | ")
    assert second.startswith(f"| 2 | {VERSION} | 1 | 0 | green | 12,345 | ")
    assert second.endswith(" | 5 min 07 s |")


def test_loaded_runs_may_share_the_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One writes into a pipe, the other reads from it: one after the other, the first would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    for name, meet in (("a", "echo hello > ../pipe"), ("b", "read word < ../pipe")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Makefile").write_text(f"test:\n\t@{meet}\n")
    trees = [Tree(tmp_path / name, sys.executable, name) for name in "ab"]
    runs = steadiness.Steadiness(trees, tmp_path, KeptRows(tmp_path, "x"))
    assert runs.run(order(trees, 2, 2, 0, at_once=2), float("inf"))
    assert [(row.python, row.beside) for row in runs.kept.rows] == [("a", 1), ("b", 1)]
    assert "run 2 of 2: green" in capsys.readouterr().out


def test_the_first_red_run_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, RED_FROM_THE_SECOND_RUN)
    given = ["--runs", "3", "--loaded", "0", "--here", "--python", sys.executable]
    assert steadiness.main(given, root) == 1
    printed = capsys.readouterr().out
    assert "test_x FAILED" in printed
    assert printed.splitlines()[-1].startswith(f"| 2 | {VERSION} | 0 | 0 | RED | ? | ")
    assert "test_x FAILED" in (root / ".prove/steadiness/run-02.log").read_text()


def test_an_environment_that_cannot_be_made_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, "venv:\n\t@echo 'no network'; exit 1\n")
    assert steadiness.main(["--here", "--python", sys.executable], root) == 1
    assert "no network" in capsys.readouterr().out


def test_the_time_that_is_over_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, GREEN)
    assert steadiness.main(["--here", "--minutes", "0", "--python", sys.executable], root) == 1
    assert "stopped after 0 of 20 runs" in capsys.readouterr().out


def test_a_later_invocation_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, GREEN)
    given = ["--here", "--busy", "1", "--python", sys.executable]
    assert steadiness.main([*given, "--runs", "1", "--loaded", "1"], root) == 0
    assert steadiness.main([*given, "--runs", "3", "--loaded", "1", "--minutes", "0", "--resume"], root) == 1
    assert "stopped after 1 of 3 runs" in capsys.readouterr().out
    assert steadiness.main([*given, "--runs", "3", "--loaded", "1", "--resume"], root) == 0
    printed = capsys.readouterr().out
    assert "run 1 of 3" not in printed and "run 3 of 3: green" in printed
    assert [line[:15] for line in printed.splitlines()[-3:]] == [
        f"| 1 | {VERSION} | 1 ", f"| 2 | {VERSION} | 0 ", f"| 3 | {VERSION} | 0 "]
    assert steadiness.main([*given, "--runs", "1", "--loaded", "0"], root) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("| 1 |")


def test_runs_of_another_commit_do_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, GREEN)
    given = ["--here", "--runs", "1", "--python", sys.executable]
    assert steadiness.main(given, root) == 0
    (root / "new").touch()
    assert steadiness.main(given, root) == 0
    with pytest.raises(SystemExit):
        steadiness.main([*given, "--resume"], root)
    assert "differs from HEAD" in capsys.readouterr().err
    repository(root, GREEN)
    assert steadiness.main([*given, "--resume"], root) == 0
    assert "run 1 of 1: green" in capsys.readouterr().out


def test_a_red_run_stays_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, "venv:\n\ntest:\n\t@exit 1\n")
    given = ["--here", "--runs", "2", "--loaded", "0", "--python", sys.executable]
    assert steadiness.main(given, root) == 1
    assert steadiness.main([*given, "--resume"], root) == 1
    assert "run 2" not in capsys.readouterr().out


def test_runs_that_share_the_machine_have_a_clone_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path, "venv:\n\ntest:\n\t@mkdir alone\n")
    given = ["--runs", "2", "--loaded", "2", "--busy", "0", "--at-once", "2", "--python", sys.executable]
    assert steadiness.main(given, root) == 0
    assert capsys.readouterr().out.count("| 1 | green") == 2, "each of the two saw the other beside it"


@pytest.mark.parametrize("given", [
    ["--runs", "0"], ["--runs", "2", "--loaded", "3"], ["--at-once", "2"], ["--python", "no-such-python"],
])
def test_a_wrong_command_line(given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        steadiness.main([*given, "--here"], tmp_path)
    assert ended.value.code == 2
    capsys.readouterr()


def test_interpreters_and_load_take_turns() -> None:
    one, two = (Tree(Path(), version, version) for version in ("3.11", "3.12"))
    alone = [([one], 0), ([one], 8), ([two], 0), ([two], 8), ([one], 0)]
    assert order([one, two], 5, 2, 8) == alone
    assert order([one, two], 5, 3, 8, 2) == [([one], 0), ([one, two], 8), ([two], 0), ([one], 8)]


def test_an_interpreter_that_is_found_can_be_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / f"python{'3.12' if VERSION != '3.12' else '3.13'}"
    broken.write_text("#!/bin/sh\nexit 127\n")
    broken.chmod(0o755)
    (tmp_path / f"python{VERSION}").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=None)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    assert installed() == [str(tmp_path / f"python{VERSION}")]
    assert version_of(str(broken)) is None


def test_busy_processes_are_busy_and_end() -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = set(children.read_text().split())
    with busy(2):
        spinners = set(children.read_text().split()) - before
    assert len(spinners) == 2
    assert not spinners & set(children.read_text().split())


def test_a_busy_process_ends_with_its_parent() -> None:
    """It holds the parent's output open for as long as it runs."""
    dies = "import os; from tests.prove.steadiness.__main__ import busy\nwith busy(1): os._exit(0)"
    subprocess.run([sys.executable, "-c", dies], cwd=ROOT, capture_output=True, timeout=120, check=True)
