"""`python -m tests.prove.hops`: count the functions and modules that a turn enters, per request and per delta."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.prove.hops.counts import (
    Counts,
    Measured,
    below,
    functions_table,
    measure,
    read_limits,
    table,
    violations,
    write_limits,
)
from tests.prove.hops.turns import TURNS

LIMITS = Path(__file__).with_name("limits.yaml")
EPILOG = """\
entered: functions that were called, and generators and coroutines that were resumed, from the request of the client to
the end of its stream; functions, modules: how many different ones; per delta: entered for one delta more, if deltas are
50 ms apart; in a burst: the same, if all deltas come at once; nesting: functions that were open at once, at most.
Only gateway, adapters and mappings count, with the log in memory and in the thread of the event loop.
The exit code is 1 if a figure is above its limit in limits.yaml.
"""


def load(file: Path) -> dict[str, Counts]:
    """The counts of an earlier run that --json wrote."""
    return {turn: Counts(**its["counts"]) for turn, its in json.loads(file.read_text(encoding="utf-8")).items()}


def save(found: dict[str, Measured], file: Path) -> None:
    file.write_text(json.dumps({turn: asdict(its) for turn, its in found.items()}, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.hops", description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], choices=list(TURNS), metavar="TURN",
                        help="only this turn; may be repeated")
    parser.add_argument("--show", action="append", default=[], choices=list(TURNS), metavar="TURN",
                        help="list the functions of this turn in the order of their first entry, with counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all counts to this file")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with an earlier run of --json")
    parser.add_argument("--limits", type=Path, default=LIMITS, metavar="FILE", help="compare with these upper limits")
    parser.add_argument("--write-limits", action="store_true", help="write the counts of this run as the limits")
    parser.add_argument("--minutes", type=float, help="accepted for `make prove`; the turns take as long as they take")
    given = parser.parse_args(arguments)
    earlier = load(given.compare) if given.compare else None
    found = {turn: measure(turn) for turn in dict.fromkeys([*given.only, *given.show]) or TURNS}
    counts = {turn: its.counts for turn, its in found.items()}
    for turn in given.show:
        print(f"{turn}\n{functions_table(found[turn])}\n")
    print(table(counts, earlier))
    if given.json:
        save(found, given.json)
    if given.write_limits:
        write_limits(counts, given.limits)
        return 0
    limits = read_limits(given.limits)
    exceeded = violations(counts, limits)
    for each in exceeded:
        print(each)
    if not exceeded and (lower := below(counts, limits)):
        print(f"below the limits, which can be lowered with --write-limits: {', '.join(lower)}")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
