"""`python -m bench`: run the scenarios and print the figures; wrong responses make it fail, slow ones do not."""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from .measure import BenchFailure, choose_cores
from .report import Row, as_json, machine, missed, notes, tables
from .scenarios import COLUMNS, COLUMNS_OF, PARTS, SCENARIOS
from .scenarios.runner import FULL, QUICK, Bench, Effort

EPILOG = """\
example:  python -m bench --quick --only burst paced --json found.json

All scenarios take about 20 minutes on two quiet cores, half of them for `growth`; the last line says how many seconds
each took. Progress goes to the error output: one line that changes on a terminal, a line per scenario elsewhere. Each
aim stands beside its row with ✓ or ✗, and the end says how many are met and which are missed.
`python -m bench.page found.json` writes the figures into docs/production.md.

Figures are medians, with half their spread in percent; a ratio is ours to the bare server's, or to whom the row names,
of runs that lay side by side in time, with the lowest and the highest in brackets. The machine's noise is in the
figures and mostly not in the ratios: read those. The exit code is 1 if a server died or a stream was not word for word
what the agent says, and 0 otherwise, whatever the figures.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows, took = list[Row](), dict[str, float]()
    effort = QUICK if options.quick else FULL
    try:
        for row in _rows(effort, options.only, took, million=options.million, litellm=options.litellm):
            rows.append(row)  # one by one, so that rows before a failure are printed
    except BenchFailure as broken:
        print(f"bench: {broken}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        _show(rows, took)
        if options.json is not None:
            options.json.write_text(json.dumps(as_json(rows, effort.name), indent=1, ensure_ascii=False) + "\n")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="The gateway beside a bare aiohttp handler that writes the same bytes, and beside other gateways.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="less work: about half the time")
    parser.add_argument("--only", nargs="+", choices=[*SCENARIOS, *PARTS], metavar="NAME", default=list(SCENARIOS),
                        help=f"only these scenarios: {', '.join(SCENARIOS)}; or parts of one: {', '.join(PARTS)}")
    parser.add_argument("--million", action="store_true",
                        help="measure lists with a million sessions, too, in `growth`; they take minutes to write")
    parser.add_argument("--litellm", action="store_true",
                        help="measure LiteLLM's proxy, too, in `upstream`; installs it into .bench, about 700 MB")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there, too")
    return parser.parse_args(arguments)


def _rows(
    effort: Effort, names: Sequence[str], took: dict[str, float], *, million: bool, litellm: bool,
) -> Iterator[Row]:
    """All rows of the named scenarios; the client runs on a core of its own. `took` gets the seconds of each."""
    cores, before = choose_cores(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cores.client})
    try:
        with TemporaryDirectory(prefix="dragoman-bench-") as folder:
            bench = Bench(effort, cores, Path(folder), _tell, million, litellm)
            for place, name in enumerate(names, 1):
                started = time.perf_counter()
                _tell_scenario(f"{place} of {len(names)}: {name} …")
                yield from (SCENARIOS | PARTS)[name](bench)
                took[name] = time.perf_counter() - started
                _tell_scenario(f"{place} of {len(names)}: {name} took {took[name]:.0f} seconds")
    finally:
        os.sched_setaffinity(0, before)
        _tell("")


def _tell(line: str) -> None:
    """Show progress on a terminal; a file or a pipe gets none."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def _tell_scenario(line: str) -> None:
    """Show in a file or a pipe how far the run is."""
    if not sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


def _show(rows: Sequence[Row], took: Mapping[str, float]) -> None:
    if not rows:
        return
    about = machine()
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    if about["cores"] < 2:
        print("note: server and client share one core; the ratios are blunted")
    print()
    for lines in tables(rows, COLUMNS, COLUMNS_OF):
        print(lines)
        print()
    judged = [row for row in rows if row.met is not None]
    print(f"{sum(row.met is True for row in judged)} of {len(judged)} aims are met")
    for line in missed(rows):
        print(f"missed: {line}")
    for note in notes(rows):
        print(f"note: {note}")
    print(f"{sum(took.values()):.0f} seconds: {', '.join(f'{name} {seconds:.0f}' for name, seconds in took.items())}")


if __name__ == "__main__":
    sys.exit(main())
