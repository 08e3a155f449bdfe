"""Runs pytest in several processes, each with its share of the test files, and prints what they print as one run.

`python -m tests.support.parallel_pytest N ARGUMENTS OF PYTEST` does so without lint and types.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

PROGRESS = re.compile(r".* \[ *\d+%\]\n")
TESTS_FAILED, NO_TESTS = 1, 5
"""What pytest exits with if tests have failed, or if it has found none."""


class Share:
    """One process of pytest. Its progress is printed as it comes, and all else when it has ended."""

    def __init__(self, number: int, count: int, root: Path, folder: Path, words: Sequence[str]) -> None:
        self.report = folder / f"tests-{number}.xml"
        self._name, self._rest = f"share {number} of {count}", list[str]()
        command = [sys.executable, "-u", "-m", "pytest", "-p", "tests.support.file_shares", f"--share={number}/{count}",
                   f"--junit-xml={self.report}", f"--basetemp={folder / f'share-{number}'}", *words]
        self._process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if PROGRESS.fullmatch(line):
                print(line, end="", flush=True)
            else:
                self._rest.append(line)

    def wait(self) -> int:
        """Wait for the end, print what is left to print, and return the exit code."""
        code = self._process.wait()
        self._reader.join()
        print("".join(self._rest).lstrip("\n"), end="", flush=True)
        if code not in (0, TESTS_FAILED, NO_TESTS):
            print(f"pytest, {self._name}, ended with exit code {code}", flush=True)
        return code

    def interrupt(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)


def run(count: int, root: Path, folder: Path, words: Sequence[str]) -> tuple[int, list[Path]]:
    """Run all tests in so many processes; return pytest's exit code and the reports."""
    shares = [Share(number, count, root, folder, words) for number in range(1, count + 1)]
    try:
        codes = {share.wait() for share in shares}
    except BaseException as reason:
        for share in shares:
            if not isinstance(reason, KeyboardInterrupt):  # Ctrl-C reached all of them
                share.interrupt()
        for share in shares:
            share.wait()
        raise
    failures = codes - {0, NO_TESTS}
    return max(failures, key=abs) if failures else min(codes), [share.report for share in shares]


if __name__ == "__main__":
    with TemporaryDirectory() as reports:
        sys.exit(run(int(sys.argv[1]), Path.cwd(), Path(reports), sys.argv[2:])[0])
