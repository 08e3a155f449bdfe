"""`python -m tests.prove.properties`: run all property tests again and again, with other examples each time.

`make test` tries the same examples every time, so that its result depends on nothing but the code. What fails here is
printed with its example: pin it with `@example`, or write a test for what it shows.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NOTHING_COLLECTED = 5


def command(seed: int, workers: int, tests: Sequence[str]) -> list[str]:
    """One round: the property tests among these tests, with examples that follow from the seed."""
    return [sys.executable, "-m", "pytest", "-m", "hypothesis", "--hypothesis-profile=search",
            f"--hypothesis-seed={seed}", "-n", str(workers), *tests]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.prove.properties", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="begin no round after that (default: 3)")
    parser.add_argument("--seed", type=int, help="of the first round; the next is one more (default: by chance)")
    parser.add_argument("--workers", type=int, default=2, help="in how many processes tests run (default: 2)")
    parser.add_argument("tests", nargs="*", default=["tests"], help="only the property tests of these (default: all)")
    given = parser.parse_args(arguments)
    end = time.monotonic() + 60 * given.minutes
    seed = random.randrange(1_000_000) if given.seed is None else given.seed
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        print(f"round {rounds + 1}: --seed {seed}", flush=True)
        if code := subprocess.run(command(seed, given.workers, given.tests), cwd=root).returncode:
            print("there are no property tests here" if code == NOTHING_COLLECTED else f"failed with --seed {seed}")
            return 1
        rounds, seed = rounds + 1, seed + 1
    print(f"{rounds} round{'s' if rounds > 1 else ''}, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
