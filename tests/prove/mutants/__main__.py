"""`python -m tests.prove.mutants`: make one mistake after the other in a copy of the tree; tests must notice each."""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

import yaml

from .rows import FILE, Mutant, by_turns, read_rows
from .tree import Result, Tree, copied

ROOT = Path(__file__).resolve().parents[3]
KILLED, SURVIVED, BROKEN, LEFT = "killed", "SURVIVED", "BROKEN", "not reached"
CLEAN_SECONDS = 1800


def main(words: Sequence[str] | None = None) -> int:
    given = _arguments(words)
    until = time.monotonic() + given.minutes * 60
    others = yaml.safe_load(given.tests_map.read_text(encoding="utf-8")) if given.tests_map else None
    rows = by_turns(row for row in read_rows(given.rows, others) if not given.only or row.id in given.only)
    if wrong := [f"{row.id}: {problem}" for row in rows if (problem := row.problem(given.tree))]:
        print("\n".join(wrong))
        return 1
    with TemporaryDirectory(prefix="mutants-") as folder:
        trees = [copied(given.tree, Path(folder) / str(number)) for number in range(given.jobs)]
        if not _is_green(trees, rows):
            return 1
        outcomes = _hunt(trees, rows, until)
    return _told(rows, outcomes)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.mutants", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree to copy (default: this one)")
    parser.add_argument("--rows", type=Path, default=FILE, help="the mutants (default: mutants.yaml beside this)")
    parser.add_argument("--only", action="append", metavar="ID", help="only this mutant; may be given several times")
    parser.add_argument("--tests-map", type=Path, metavar="FILE", help="YAML: other tests for mutants, by their ids")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no mutant after that (default: 60)")
    parser.add_argument("--jobs", type=int, default=2, help="so many mutants at a time (default: 2)")
    return parser.parse_args(words)


def _is_green(trees: Sequence[Tree], rows: Sequence[Mutant]) -> bool:
    """Without a mistake all these tests pass; a part of them in each tree, which has its bytecode from then on."""
    tests = sorted({test for row in rows for test in row.tests})
    shares = [tests[number::len(trees)] for number in range(len(trees))]
    print(f"running {len(tests)} tests and files of tests without a mistake", flush=True)
    with ThreadPoolExecutor(len(trees)) as pool:
        results = list(pool.map(_clean, trees, shares))
    for result in results:
        if result.code:
            print(result.output)
        print(f"  {'red' if result.code else 'green'} after {result.seconds:.0f} s", flush=True)
    return not any(result.code for result in results)


def _clean(tree: Tree, tests: Sequence[str]) -> Result:
    return tree.run(tests, seconds=CLEAN_SECONDS) if tests else Result(0, "", 0.0, "")


def _hunt(trees: Sequence[Tree], rows: Sequence[Mutant], until: float) -> dict[str, tuple[str, Result | None]]:
    """What became of each mutant; each has a tree for itself for as long as it takes."""
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def put(mutant: Mutant) -> tuple[str, Result | None]:
        tree = free.get()
        try:
            if time.monotonic() > until:
                return LEFT, None
            with tree.damaged(mutant):
                result = tree.run(mutant.tests, "-x")
        finally:
            free.put(tree)
        outcome = {0: SURVIVED, 1: KILLED, None: KILLED}.get(result.code, BROKEN)
        print(f"{outcome:9} {mutant.id} ({result.seconds:.0f} s)", flush=True)
        return outcome, result

    with ThreadPoolExecutor(len(trees)) as pool:
        return dict(zip((row.id for row in rows), pool.map(put, rows), strict=True))


def _told(rows: Sequence[Mutant], outcomes: dict[str, tuple[str, Result | None]]) -> int:
    """The table, what to look at, and the exit code."""
    print(f"\n{'id':42} {'room':14} {'outcome':11} {'s':>4}  noticed by")
    for row in sorted(rows, key=lambda row: row.room):
        outcome, result = outcomes[row.id]
        seconds, witness = (f"{result.seconds:.0f}", result.witness) if result else ("", "")
        hung = "the tests hung" if result and result.code is None else ""
        print(f"{row.id:42} {row.room:14} {outcome:11} {seconds:>4}  {witness or hung}")
    for row in rows:
        outcome, result = outcomes[row.id]
        if outcome in (SURVIVED, BROKEN):
            print(f"\n{row.id} {outcome}: {row.sentence}\n  {row.file}\n  {' '.join(row.tests)}")
            print(result.output if result and outcome == BROKEN else "")
    counts = [outcome for outcome, _ in outcomes.values()]
    print("\n" + ", ".join(f"{counts.count(word)} {word}" for word in (KILLED, SURVIVED, BROKEN, LEFT)))
    return 0 if set(counts) == {KILLED} else 1


if __name__ == "__main__":
    sys.exit(main())
