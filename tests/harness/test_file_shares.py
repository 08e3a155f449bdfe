"""Test files are shared out between workers: every test runs once, and a worker that dies ends the run."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.__main__ import SHARED
from tests.support.file_shares import SECONDS, Share, costs_of_files, shared_out

ROOT = Path(__file__).parents[2]
COSTS = {"long": 60.0, "longish": 25.0, **{f"quick_{number}": 1.0 for number in range(40)}}


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 60])
def test_every_file_is_in_one_share(workers: int) -> None:
    shares = shared_out(COSTS, workers)
    assert len(shares) == workers and sorted(file for share in shares for file in share) == sorted(COSTS)
    assert [set()] * workers == shared_out({}, workers)


def test_shares_cost_about_the_same() -> None:
    assert [sum(COSTS[file] for file in share) for share in shared_out(COSTS, 2)] == [63, 62]


def test_every_file_that_takes_long_is_there() -> None:
    assert costs_of_files(ROOT).items() >= SECONDS.items()


def test_files_of_nobody_belong_to_the_first_worker(tmp_path: Path) -> None:
    assert [Share(tmp_path, number, 2).has(tmp_path / "bench/test_x.py") for number in (0, 1)] == [True, False]


def run(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-n", "2", *SHARED, "-p", "no:cacheprovider", f"--rootdir={tree}",
               "-c", str(tree / "pytest.ini"), *words]
    return subprocess.run(command, cwd=tree, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=170)


def test_every_test_runs_once_and_a_worker_that_dies_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name in ("one", "two", "three"):
        (tmp_path / f"tests/test_{name}.py").write_text(
            f"def test_a(): print('ran', file=open('{name}_a', 'x'))\ndef test_b(): open('{name}_b', 'x')\n")
    good = run(tmp_path, "tests", "tests/test_one.py")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "6 passed" in good.stdout and "[100%]" in good.stdout
    for made in tmp_path.glob("*_*"):
        made.unlink()
    (tmp_path / "tests/test_two.py").write_text("import os\ndef test_a(): os._exit(3)\ndef test_b(): pass\n")
    bad = run(tmp_path, "tests")
    assert bad.returncode != 0
    assert "crashed" in bad.stdout and "test_two.py::test_a" in bad.stdout
