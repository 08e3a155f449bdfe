"""Test files are shared out between processes: every test runs once, and a process that dies fails the run."""

import re
from pathlib import Path

import pytest

from tests.support import parallel_pytest
from tests.support.file_shares import SECONDS, Share, costs_of_files, shared_out

ROOT = Path(__file__).parents[2]
COSTS = {"a/long": 60.0, "b/longish": 25.0, **{f"c/quick_{number:02}": 1.0 for number in range(40)}}


@pytest.mark.parametrize("count", [1, 2, 3, 8, 60])
def test_every_file_is_in_one_share(count: int) -> None:
    shares = shared_out(COSTS, count)
    assert len(shares) == count and sorted(file for share in shares for file in share) == sorted(COSTS)
    assert [set()] * count == shared_out({}, count)


def test_shares_cost_about_the_same_and_keep_neighbours_together() -> None:
    assert [sum(COSTS[file] for file in share) for share in shared_out(COSTS, 2)] == [60, 65]
    assert shared_out({f"{folder}/{file}": 1.0 for folder in "abc" for file in "xyz"}, 3) == [
        {f"{folder}/{file}" for file in "xyz"} for folder in "abc"]


def test_every_file_that_takes_long_is_there() -> None:
    assert costs_of_files(ROOT).items() >= SECONDS.items()


@pytest.mark.parametrize("file", ["bench/test_x.py", "tests/prove/x/test_x.py", "tests/support/test_x.py"])
def test_files_of_nobody_belong_to_the_first_share(file: str, tmp_path: Path) -> None:
    assert [Share(tmp_path, number, 2).has(tmp_path / file) for number in (0, 1)] == [True, False]


def test_files_that_are_not_run_cost_nothing(tmp_path: Path) -> None:
    for file in ("tests/prove/x/test_x.py", "tests/support/test_x.py", "tests/x/test_x.py"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("def test_x(): pass")
    assert set(costs_of_files(tmp_path)) == {"tests/x/test_x.py"}


def run(tree: Path, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code, reports = parallel_pytest.run(2, tree, tree, ["-p", "no:cacheprovider", *words])
    assert len(reports) == 2
    return code, capfd.readouterr().out


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files of two tests; each test leaves a file, and fails if that is there."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a pytest with few plugins starts sooner
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name in ("one", "two", "three"):
        (tmp_path / f"tests/test_{name}.py").write_text(
            f"def test_a(): open('{name}_a', 'x')\ndef test_b(): open('{name}_b', 'x')\n")
    return tmp_path


def test_every_test_runs_once(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, printed = run(tree, capfd, "tests", "tests/test_one.py")
    assert code == 0, printed
    assert sorted(re.findall(r"(\d) passed", printed)) == ["2", "4"]
    assert len(list(tree.glob("*_[ab]"))) == 6


def test_a_process_that_dies_fails_the_run_and_one_without_tests_does_not(
        tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tree / "tests/test_two.py").write_text("import os\ndef test_a(): os._exit(3)\n")
    assert run(tree, capfd, "tests/test_one.py")[0] == 0
    code, printed = run(tree, capfd, "tests/test_two.py")
    assert code == 3 and re.search("pytest, share . of 2, ended with exit code 3", printed), printed
