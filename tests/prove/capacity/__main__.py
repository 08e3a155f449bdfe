"""`python -m tests.prove.capacity`: measure what a load costs, and write the costs and the pages that show them."""

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.measure import BenchFailure, choose_cores
from gateway.capacity import FILE, Coefficients, CpuMeasurement, FleetCount, Machine, MeasuredLoad

from .fleet import redis_version
from .measurement import FULL, QUICK, CpuSample, Size, commit_seconds, compared, fitted_cpu, measured_samples
from .memory import measured_memory
from .page import TABLES, write_pages
from .simulated_fleet import MOST_EXPONENT, SIZES, counted_fleets

LIBRARIES = ("aiohttp", "uvloop", "redis", "hiredis")
EPILOG = """\
CPU seconds of processes are measured, not time: other work on the machine makes a second of CPU do less (caches), and
makes replicas wait, so that they store more deltas at once, which costs less. Both are in the figures; the run prints
the load of the machine and for how long replicas waited. A full run writes gateway/capacity/coefficients.json,
docs/capacity.md and the figures of docs/production.md; a quick one writes only with --write. The exit code is 1 if
something in the simulated fleet grows faster than the fleet, or if a server failed; never because of a figure.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    given = _options(arguments)
    size = QUICK if given.quick else FULL
    if shutil.which("redis-server") is None:
        print("capacity: redis-server is not installed", file=sys.stderr)
        return 1
    fleet = counted_fleets(SIZES)
    for one in fleet:
        _tell(f"each replica, {one.name}: {one.by_replicas}; exponent {one.exponent}")
    if given.fleet:
        return _verdict(fleet)
    try:
        found = _measured(size, given.primaries, fleet)
    except BenchFailure as broken:
        print(f"capacity: {broken}", file=sys.stderr)
        return 1
    for name, table in TABLES.items():
        print(f"\n== {name} ==", table(found), sep="\n", flush=True)
    if given.write or not given.quick:
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
        write_pages()
        print(f"written: {FILE.name}, and the pages")
    return _verdict(fleet)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.capacity", description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller loads, once: about three minutes")
    parser.add_argument("--write", action="store_true", help="write what a quick run has found, too")
    parser.add_argument("--primaries", type=int, nargs="+", default=[1, 3], metavar="N",
                        help="measure with so many primaries of Redis; one and three unless said")
    parser.add_argument("--fleet", action="store_true", help="only count what the simulated fleet does")
    parser.add_argument("--minutes", type=float, help="accepted for `make prove`; the loads take as long as they take")
    return parser.parse_args(arguments)


def _measured(size: Size, primaries: Sequence[int], fleet: list[FleetCount]) -> Coefficients:
    before, cpu, loads = os.getloadavg()[1], list[CpuMeasurement](), list[MeasuredLoad]()
    every, seconds = list[CpuSample](), 0.0
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {choose_cores().client})
    try:
        with TemporaryDirectory(prefix="dragoman-capacity-") as name:
            folder = Path(name)
            for count in sorted(primaries):
                samples = measured_samples(folder, size, count, _tell)
                seconds = seconds or commit_seconds(samples)  # with one primary: a group is one script
                cpu.append(fitted_cpu(samples, count, seconds))
                loads += compared(cpu[-1], samples)
                every += samples
            replica, redis, checks = measured_memory(folder, size, _tell)
    finally:
        os.sched_setaffinity(0, allowed)
    machine = Machine(
        size=size.name, processor=_processor(), cores=len(allowed), versions=_versions(),
        load=[round(before, 1), round(os.getloadavg()[1], 1)],
        waited=round(sum(one.spent.waited for one in every) / sum(one.spent.replicas for one in every), 2))
    return Coefficients(machine=machine, cpu=cpu, replica_memory=replica, redis_memory=redis, loads=loads,
                        memory_checks=checks, fleet=fleet)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions() -> dict[str, str]:
    return {"Python": platform.python_version(), **{name: version(name) for name in LIBRARIES},
            "redis-server": redis_version()}


def _verdict(fleet: Sequence[FleetCount]) -> int:
    """Fail if a fleet does more for each replica, the more replicas there are."""
    steep = [one for one in fleet if one.exponent > MOST_EXPONENT]
    for one in steep:
        print(f"grows faster than the fleet: {one.name}, exponent {one.exponent}", file=sys.stderr)
    return 1 if steep else 0


def _tell(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
