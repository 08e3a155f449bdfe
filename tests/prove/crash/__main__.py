"""`python -m tests.prove.crash`: kill a server at many moments under load in all dialects, and judge what is left."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.prove.crash.kill_runs import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="make crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how often the server dies (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="chooses the moments and what clients say (default: 1)")
    parser.add_argument("--signal", choices=("KILL", "TERM"), default="KILL", help="what it dies of (default: KILL)")
    parser.add_argument("--folder", type=Path, help="keep data and journal here (default: a temporary folder)")
    given = parser.parse_args()
    if given.kills < 1:
        parser.error("--kills: at least one")
    with TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        number = signal.Signals[f"SIG{given.signal}"]
        report = asyncio.run(run(folder, given.kills, given.seed, number, lambda line: print(line, flush=True)))
    print(report)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
