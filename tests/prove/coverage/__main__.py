"""`python -m tests.prove.coverage`: run the tests under coverage, and tell how much of every room they run."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.prove.coverage.rooms import PACKAGES, load_rooms, losses, read_rooms, table, write_rooms

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / ".prove" / "coverage"
SETTINGS = """\
[run]
source = {packages}
parallel = true
data_file = {folder}/.coverage
patch = subprocess, fork, _exit
sigterm = true
disable_warnings = no-data-collected
"""


def measure(workers: int, tests: Sequence[str]) -> int:
    """Run pytest in so many processes, and all that tests start, under coverage; the exit code is that of pytest."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    settings = FOLDER / "settings.ini"
    settings.write_text(SETTINGS.format(packages=",".join(PACKAGES), folder=FOLDER))
    words = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m",
             "tests.support.parallel_pytest", str(workers), *tests]
    return subprocess.run(words, cwd=ROOT, env={**os.environ, "COVERAGE_CORE": "ctrace"}).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.coverage", description=__doc__)
    parser.add_argument("--data", type=Path, help="read this data file (or folder of them); no test is run")
    parser.add_argument("--json", type=Path, default=FOLDER / "rooms.json", help="write the table here, too")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with an earlier table of --json")
    parser.add_argument("--allowed", type=float, default=0.5, help="percentage points a room may lose (default: 0.5)")
    parser.add_argument("--workers", type=int, default=2, help="in how many processes tests run (default: 2)")
    parser.add_argument("--tests", nargs="+", default=[], help="only these tests (default: all)")
    parser.add_argument("--minutes", type=float, help="accepted for `make prove`; the tests take as long as they take")
    given = parser.parse_args(arguments)
    earlier = load_rooms(given.against) if given.against else None
    code = 0 if given.data else measure(given.workers, given.tests)
    rooms = read_rooms(given.data or FOLDER)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    write_rooms(rooms, given.json)
    told = table(rooms, earlier)
    print(f"\n{told}\n\nwritten to {given.json}")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as page:
            page.write(f"```\n{told}\n```\n")
    lost = losses(rooms, earlier, given.allowed) if earlier else []
    print("\n".join(lost))
    if code:
        print("the tests are not green: what is covered is not what it would be")
    return 1 if code or lost else 0


if __name__ == "__main__":
    sys.exit(main())
