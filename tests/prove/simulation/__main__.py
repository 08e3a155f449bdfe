"""`python -m tests.prove.simulation`: run worlds by their seeds, and judge what every client saw."""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.prove.coverage.rooms import PACKAGES, read_rooms
from tests.prove.simulation.kept_plans import kept_plans
from tests.prove.simulation.plan import Plan
from tests.prove.simulation.planted import PLANTED, planted
from tests.prove.simulation.planted_runs import Found, find, table
from tests.prove.simulation.refusals import REFUSALS, Refusal
from tests.prove.simulation.scenarios import NAMES, any_world, scenario
from tests.prove.simulation.shrink import shrunk
from tests.prove.simulation.workers import run_apart, run_many
from tests.prove.simulation.world import Outcome, run_world, simulation

AGAIN = "python -m tests.prove.simulation --replay {seed} --trace{scenario}"
SEEDS, MOST_PLANTED, COVERED_SEEDS = 2000, 300, 10
"""How many worlds are run, how many at most to find a planted bug, and how many under coverage, which is slow."""
COVERED_ROOMS = ("gateway/engine", "gateway/cluster", "gateway/storage")
TOLD_AFTER = 25
"""After so many worlds it is told how far the run is."""
SHOWN = 12
"""How many broken promises of a world are shown."""


class Result(NamedTuple):
    """What is told of one world of many."""

    seed: int
    broken: tuple[str, ...]
    digest: str
    """Of its steps, if they were asked for: equal if they are."""
    turns: int
    seconds: float
    late: list[Refusal]
    """The refused requests that began when nothing was wrong any more."""


def result_of(plan: Plan, *, is_traced: bool) -> Result:
    outcome = run_world(plan, is_traced=is_traced)
    digest = digest_of(outcome) if is_traced else ""
    late = [one for one in outcome.refusals if one.since_trouble > 0]
    return Result(plan.seed, tuple(outcome.broken), digest, outcome.turns, outcome.seconds, late)


def digest_of(outcome: Outcome) -> str:
    return hashlib.sha256(outcome.trace().encode()).hexdigest()[:16]


def plan_for(seed: int, name: str | None) -> Plan:
    """The world of this seed: any, or of the scenario of this name; kept plans have negative numbers."""
    if seed < 0:
        return next(kept.plan for kept in kept_plans() if kept.plan.seed == seed)
    return any_world(seed) if name is None else scenario(name, seed)


def run_plans(plans: list[Plan], workers: int, *, is_traced: bool) -> Iterator[Result]:
    """Run these worlds; with one worker, in this process."""
    if workers > 1:
        yield from run_many(partial(run_apart, partial(result_of, is_traced=is_traced)), plans, workers)
        return
    with simulation():
        yield from (result_of(plan, is_traced=is_traced) for plan in plans)


def search(given: argparse.Namespace) -> int:
    """Run many seeds; tell those that broke a promise."""
    began, bad, count, turns, virtual, end = time.monotonic(), list[int](), 0, 0, 0.0, float("inf")
    if given.minutes is not None and given.seeds is None:
        end = began + 60 * given.minutes
    wanted = given.seeds or SEEDS
    plans = [plan_for(seed, given.scenario) for seed in range(given.first, given.first + wanted)]
    late = list[tuple[int, Refusal]]()
    again = f" --scenario {given.scenario}" if given.scenario else ""
    if given.scenario is None:
        plans = [*(kept.plan for kept in kept_plans()), *plans]
    for result in run_plans(plans, given.workers, is_traced=given.digests):
        count, turns, virtual = count + 1, turns + result.turns, virtual + result.seconds
        late += [(result.seed, one) for one in result.late]
        if given.digests:
            print(f"seed {result.seed} {result.digest}", flush=True)
        if result.broken:
            bad.append(result.seed)
            print(f"seed {result.seed} broke {len(result.broken)} promises: "
                  f"{AGAIN.format(seed=result.seed, scenario=again)}")
            print(*(f"    {one}" for one in result.broken[:SHOWN]), sep="\n", flush=True)
        if count % TOLD_AFTER == 0:
            rate = count / (time.monotonic() - began)
            print(f"{count} of {len(plans)} seeds, {len(bad)} broke a promise, {rate:.2f} seeds per second", flush=True)
        if time.monotonic() > end:
            print(f"the time is over after {count} of {len(plans)} seeds")
            break
    tell_late(late)
    seconds = time.monotonic() - began
    told = f"{len(bad)} broke a promise" + (f": {bad}" if bad else "")
    print(f"{count} seeds from {given.first} on, {turns} turns, {virtual / 3600:.1f} h of virtual time in "
          f"{seconds:.0f} s: {count / seconds:.2f} seeds per second; {told}")
    return 1 if bad else 0


def tell_late(refused: list[tuple[int, Refusal]]) -> None:
    """Tell how long after everything was mended requests were still refused."""
    for status in REFUSALS:
        late = [one for one in refused if one[1].status == status]
        if late:
            seed, last = max(late, key=lambda one: one[1].since_trouble)
            print(f"{status}: {len(late)} requests that began when all was mended; the latest "
                  f"{last.since_trouble:.2f} s after that: {last.request} (seed {seed})")


def tell_planted(names: list[str], seeds: range, workers: int) -> int:
    """Tell for each planted bug how many worlds it takes to find it."""
    found = list[Found]()
    for one in run_many(partial(find, seeds=seeds), names, workers):
        print(one, flush=True)
        found.append(one)
    missed = sum(one.seed is None for one in found)
    print("", *table(found), "", f"{len(names)} bugs planted, {missed} of them not found", sep="\n")
    return 1 if missed else 0


def cover(seeds: int, first: int) -> int:
    """Run the worlds in a process under coverage; tell how much of each room they ran."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / ".coverage"
        words = [sys.executable, "-m", "coverage", "run", f"--data-file={data}", f"--source={','.join(PACKAGES)}", "-m",
                 "tests.prove.simulation", "--workers", "1", "--seeds", str(seeds), "--first", str(first)]
        code = subprocess.run(words, env={**os.environ, "COVERAGE_CORE": "ctrace"}).returncode
        rooms = read_rooms(data)
    for name in COVERED_ROOMS:
        room = rooms[name]
        print(f"{name:18} {room.percent:5.1f} % of {room.lines} lines")
        least = sorted(room.missing.items(), key=lambda one: -one[1])[:5]
        print(*(f"    {missing:4} lines did not run in {file}" for file, missing in least), sep="\n")
    return code


def replay(plan: Plan, with_trace: bool) -> int:
    """Run one world, and tell its steps."""
    with simulation():
        outcome = run_world(plan, is_traced=True)
    if with_trace:
        print(outcome.trace(), end="")
    tell(outcome)
    return 1 if outcome.broken else 0


def show(given: argparse.Namespace) -> int:
    """Run one world, or the shortest that is as bad."""
    if given.replay is not None:
        return replay(plan_for(given.replay, given.scenario), given.trace)
    with simulation():
        plan = shrunk(plan_for(given.shrink, given.scenario), lambda line: print(line, flush=True)).plan
    return replay(plan, given.trace)


def tell(outcome: Outcome) -> None:
    print(*outcome.plan.lines(), sep="\n")
    print(f"{outcome.turns} turns, {outcome.seconds:.3f} s of virtual time, {outcome.callbacks} callbacks, "
          f"{len(outcome.steps)} steps, {digest_of(outcome)}")
    print(*(f"broken: {one}" for one in outcome.broken), sep="\n" if outcome.broken else "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.simulation", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, help="how many worlds (default: 2000; with --planted 300, with --coverage 10)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes; with --seeds all are run")
    parser.add_argument("--digests", action="store_true", help="print a digest of the steps of every world")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one world")
    parser.add_argument("--trace", action="store_true", help="with --replay: print every step")
    parser.add_argument("--shrink", type=int, metavar="SEED", help="find the shortest world that breaks a promise")
    parser.add_argument("--planted", nargs="?", const="", metavar="NAME", choices=["", *PLANTED],
                        help="plant bugs, or one of them, and tell how many worlds it takes to find each; "
                             "with --replay or --shrink: plant this one")
    parser.add_argument("--scenario", choices=NAMES, help="worlds in which the same thing goes wrong in every seed")
    parser.add_argument("--coverage", action="store_true", help="tell how much of engine, cluster and storage runs")
    given = parser.parse_args()
    if given.replay is not None or given.shrink is not None:
        with planted(given.planted) if given.planted else nullcontext():
            return show(given)
    if given.planted is not None:
        names = [given.planted] if given.planted else list(PLANTED)
        return tell_planted(names, range(given.first, given.first + (given.seeds or MOST_PLANTED)), given.workers)
    if given.coverage:
        return cover(given.seeds or COVERED_SEEDS, given.first)
    return search(given)


if __name__ == "__main__":
    sys.exit(main())
