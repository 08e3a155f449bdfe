"""A copy of the source tree in which mistakes are made one at a time, and in which tests are run."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .rows import Mutant

TEST_SECONDS = 60
"""A test that has not ended by then hangs, which is a failure."""
RUN_SECONDS = 240
"""Tests that have not ended by then hang where pytest cannot see it."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
SKIPPED = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "node_modules")


@dataclass(frozen=True)
class Result:
    """How a run of tests ended: the exit code of pytest (None if it hung), and the first test that failed."""

    code: int | None
    witness: str
    seconds: float
    output: str


def copied(source: Path, target: Path) -> "Tree":
    """The files that git knows or would add; all files where there is no git."""
    listed = subprocess.run(
        ["git", "-C", str(source), "ls-files", "-co", "-z", "--exclude-standard"], capture_output=True, check=False)
    if listed.returncode:
        shutil.copytree(source, target, ignore=SKIPPED, symlinks=True)
        return Tree(target)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)
    return Tree(target)


class Tree:
    """One copy; its modules are imported before those of an installed package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def damaged(self, mutant: Mutant) -> Iterator[None]:
        """Within this block the mistake is in the file."""
        path = self.folder / mutant.file
        whole = path.read_text(encoding="utf-8")
        self._write(path, mutant.damaged(whole))
        try:
            yield
        finally:
            self._write(path, whole)

    def run(self, tests: Sequence[str], *options: str, seconds: float = RUN_SECONDS) -> Result:
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [
            sys.executable, "-m", "pytest", "-q", "-rfE", "--no-header", "--tb=short", "-p", "no:cacheprovider",
            "--timeout", str(TEST_SECONDS), *options, *tests,
        ]
        since = time.monotonic()
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, text=True, errors="replace",
        )
        code: int | None = None
        try:
            output, _ = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            output = ""
        finally:
            with suppress(ProcessLookupError):  # whatever the tests have left behind
                os.killpg(process.pid, signal.SIGKILL)
        if code is None:
            output, _ = process.communicate()
        found = FAILED.search(output)
        return Result(code, found[1] if found else "", time.monotonic() - since, output)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """Bytecode is checked by the second and the size of its source, which may be the same before and after."""
        path.write_text(text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()
