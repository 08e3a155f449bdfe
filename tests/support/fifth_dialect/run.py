"""Runs files of tests with the fifth dialect on their path, and says which of them had a test of it.

The dialect is Quill, in the folder `tree`. It is copied into a temporary folder, and the tests run in a process of
their own that has the folder on its path.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
HOME = ROOT / "tests" / "support" / "fifth_dialect"
ROOMS = ("adapters", "bench", "conformance", "docs", "gateway", "mappings", "tests")
CHECKS = "tests/support/fifth_dialect/test_taken_up.py"
"""One small thing of each: it is served, listed, paired, recorded, killed, examined, worked and translated."""
HANG = 600
"""Seconds that only a hang takes."""


def files_of_the_tree() -> dict[Path, tuple[int, int]]:
    """All files with their sizes and the times of their last changes, but for what Python compiles."""
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in found if path.suffix != ".pyc"}


def run_with_fifth_dialect(folder: Path, files: Sequence[str]) -> tuple[set[str], set[str]]:
    """The files that had passing tests of the dialect, and the parts that it does not have, which were left out."""
    shutil.copytree(HOME / "tree", folder / "fifth", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.support.fifth_dialect.plugin", "-p", "no:cacheprovider", "-rA",
         "--tb=short", *files, "-k", "quill or taken_up"],
        cwd=ROOT, env={**os.environ, "FIFTH_DIALECT": str(folder / "fifth")}, capture_output=True, text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    passed = set(re.findall(r"^PASSED ([^:]+)::", done.stdout, re.MULTILINE))
    left_out = re.findall(r"^SKIPPED .*: quill is left out: there is no .*/quill/(\w+)\.py$", done.stdout, re.MULTILINE)
    return passed, set(left_out)
