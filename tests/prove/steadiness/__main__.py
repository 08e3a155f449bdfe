"""`python -m tests.prove.steadiness`: run `make test` again and again, half of the time on a busy machine.

Every interpreter has a fresh clone of HEAD with an environment of its own, and the runs take turns over interpreters
and load. With --at-once, so many runs share the busy machine, each in a clone of its own. The first run that is not
green ends it: exit code 1, and its output is kept in .prove/steadiness. So are the rows of the table, for each commit:
what --minutes or Ctrl-C cut short, --resume goes on with, and prints one table of all.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.prove.steadiness.kept_rows import Checkout, KeptRows, Row
from tests.support.child_commands import ChildCommand
from tests.support.interpreters import installed, version_of

ROOT = Path(__file__).resolve().parents[3]
LOGS = Path(".prove/steadiness")
TAIL = 60
HANG = 4 * 3600.0
SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"
"""Keeps a core busy for as long as its parent is there."""


@dataclass(frozen=True)
class Tree:
    """A tree to run `make test` in, with one interpreter."""

    folder: Path
    python: str
    version: str

    def make(self, target: str) -> list[str]:
        return ["make", target, f"PYTHON={self.python}"]


Batch = tuple[list[Tree], int]
"""Trees whose runs begin together, and how many busy processes there are beside them."""


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that do nothing but keep a core busy."""
    spinners = [subprocess.Popen([sys.executable, "-c", SPIN, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def clone(source: Path, folder: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", str(source), str(folder)], check=True)


class Steadiness:
    """Runs of `make test` in a row, and the table of them."""

    def __init__(self, trees: Sequence[Tree], logs: Path, kept: KeptRows) -> None:
        self.trees = trees
        self.logs = logs
        self.kept = kept

    def prepare(self) -> bool:
        """Make the environment of every tree, a few at a time; what is downloaded is not part of any run."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return all(pool.map(self._prepare, self.trees))

    def _prepare(self, tree: Tree) -> bool:
        print(f"Python {tree.version}: making the environment", flush=True)
        return self._run(tree, "venv", self.logs / f"venv-{tree.folder.name}.log")[0]

    def run(self, batches: Sequence[Batch], until: float) -> bool:
        """Whether all runs were green."""
        runs = len(self.kept.rows) + sum(len(trees) for trees, _ in batches)
        for trees, load in batches:
            first = len(self.kept.rows) + 1
            if time.monotonic() > until:
                print(f"stopped after {first - 1} of {runs} runs: the time is over (--resume goes on)", flush=True)
                return False
            numbers = range(first, first + len(trees))
            for number, tree in zip(numbers, trees, strict=True):
                print(f"run {number} of {runs}: Python {tree.version}, {load} busy processes", flush=True)
            with busy(load), ThreadPoolExecutor(len(trees)) as pool:
                rows = list(pool.map(partial(self._row, load, len(trees) - 1), numbers, trees))
            for number, row in zip(numbers, rows, strict=True):
                print(f"run {number} of {runs}: {row.result} in {row.seconds:.0f} s", flush=True)
            self.kept.add(rows)
            if not self.kept.is_green:
                return False
        return True

    def _row(self, load: int, beside: int, number: int, tree: Tree) -> Row:
        log = self.logs / f"run-{number:02}.log"
        is_green, seconds = self._run(tree, "test", log)
        said = log.read_text(encoding="utf-8", errors="replace")
        passed = re.findall(r"([\d,]+) tests passed", said)
        cpu = re.findall(r"(\d[\d min]* s) of CPU", said)
        return Row(tree.version, load, beside, is_green, *(passed[-1:] or ["?"]), seconds, *(cpu[-1:] or ["?"]))

    @staticmethod
    def _run(tree: Tree, target: str, log: Path) -> tuple[bool, float]:
        with ChildCommand(tree.make(target), cwd=tree.folder, log=log) as command:
            command.wait(HANG)
            ended = command.end()
        if ended.code != 0:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            print(f"--- the last lines of {log}", *lines[-TAIL:], "---", sep="\n", flush=True)
        return ended.code == 0, ended.seconds


def order(trees: Sequence[Tree], runs: int, loaded: int, spinners: int, at_once: int = 1) -> list[Batch]:
    """Batches of runs: every tree quiet and busy by turns; quiet runs are alone, loaded ones so many at once."""
    quiet: list[Batch] = [([tree], 0) for tree in islice(cycle(trees), runs - loaded)]
    beside = list(islice(cycle(trees), loaded))
    busy_batches: list[Batch] = [(beside[start:start + at_once], spinners) for start in range(0, loaded, at_once)]
    return [batch for pair in zip_longest(quiet, busy_batches) for batch in pair if batch is not None]


def left_over(batches: Sequence[Batch], kept: KeptRows) -> list[Batch]:
    """The batches without the runs that there were already."""
    made, rest = kept.counts(), []
    for trees, load in batches:
        missing = []
        for tree in trees:
            if made[tree.version, load] > 0:
                made[tree.version, load] -= 1
            else:
                missing.append(tree)
        rest += [(missing, load)] if missing else []
    return rest


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.prove.steadiness", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=20, help="how many runs in all (default: 20)")
    parser.add_argument("--loaded", type=int, help="how many of them on a busy machine (default: half of them)")
    parser.add_argument("--busy", type=int, default=8, help="how many processes keep it busy (default: 8)")
    parser.add_argument("--at-once", type=int, default=1, help="how many loaded runs share the machine (default: 1)")
    parser.add_argument("--python", nargs="+", metavar="PYTHON", help="interpreters (default: 3.11 to 3.14, if found)")
    parser.add_argument("--here", action="store_true", help="in the working tree, not in clones of HEAD")
    parser.add_argument("--resume", action="store_true", help="go on with the runs of earlier invocations on HEAD")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after that")
    return parser


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    loaded = given.runs // 2 if given.loaded is None else given.loaded
    if not 0 <= loaded <= given.runs or given.runs < 1:
        parser.error("--runs: at least 1; --loaded: not more than --runs")
    pythons = {python: version_of(python) for python in given.python or installed()}
    if unusable := [python for python, version in pythons.items() if version is None]:
        parser.error(f"cannot be run: {', '.join(unusable)}")
    if given.at_once < 1 or (given.here and given.at_once > 1):
        parser.error("--at-once: at least 1; with --here, 1")
    until = time.monotonic() + 60 * given.minutes
    checkout = Checkout.of(root)
    if given.here and given.resume and checkout.is_changed:
        parser.error("--resume --here: the working tree differs from HEAD, and so from what the earlier runs tested")
    logs = root / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    kept = KeptRows(logs, checkout.name if given.here else checkout.commit)
    if given.resume:
        kept.read()
    else:
        kept.begin_anew()
    with TemporaryDirectory(prefix="steadiness-") as temporary:
        if not given.here and checkout.is_changed:
            print("what is not committed is not part of the clones (--here runs the working tree)", flush=True)
        count = max(given.at_once, len(pythons))
        trees = [Tree(root if given.here else Path(temporary) / f"{version}-{place}", python, str(version))
                 for place, (python, version) in enumerate(islice(cycle(pythons.items()), count), start=1)]
        batches = left_over(order(trees, given.runs, loaded, given.busy, given.at_once), kept)
        needed = [tree for tree in trees if any(tree in batch for batch, _ in batches)]
        for tree in needed if kept.is_green and not given.here else []:
            clone(root, tree.folder)
        steadiness = Steadiness(needed, logs, kept)
        is_green = kept.is_green and steadiness.prepare() and steadiness.run(batches, until)
    print(f"\n{kept.table()}")
    return 0 if is_green else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
