"""Runs the plans of the kill matrix: in this process, or in several, a few flaws at a time in each."""

import logging
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance.faults.kill.case_runner import case_runner_of
from conformance.faults.kill.clean_run import run_cleanly
from conformance.faults.kill.clock import run_jumping
from conformance.faults.kill.examiner import AT_ONCE, FOR_KILLING, PATIENT, FlawExaminer, FlawResult, several
from conformance.faults.kill.matrix import Matrix
from conformance.faults.kill.orders import read_orders
from conformance.faults.kill.plan import Piece, Plan, make_plan
from conformance.faults.kill.traffic import Traffic


@dataclass(frozen=True)
class RunOptions:
    """What is to be run."""

    dialects: tuple[str, ...]
    only: tuple[str, ...] = ()
    sample: int | None = None
    with_free: bool = False
    within: float = FOR_KILLING
    at_once: int = AT_ONCE

    @property
    def is_whole(self) -> bool:
        return not self.only and self.sample is None


Advance = Callable[[str, int, int], None]
"""(the dialect, how much more is done, how much more there is to do)."""


@cache
def examiner_of(dialect: str, within: float) -> FlawExaminer:
    return FlawExaminer(case_runner_of(dialect), read_orders(dialect), within)


async def clean_traffic(dialect: str, at_once: int) -> Traffic:
    """The traffic of the dialect."""
    return await run_cleanly(case_runner_of(dialect), read_orders(dialect).walk, PATIENT, at_once)


async def done(piece: Piece, within: float, at_once: int) -> tuple[list[FlawResult], list[FlawResult]]:
    """What came of a piece of work: results, and false alarms."""
    examiner = examiner_of(piece.dialect, within)
    caught = await several([examiner.examine(trial) for trial in piece.flaw_cases], at_once)
    by_hand = await several([examiner.examine_fault(name) for name in piece.by_hand], at_once)
    alarms = await several([examiner.alarms(trial.flaws, trial.case) for trial in piece.trials], at_once)
    return [*caught, *by_hand], [alarm for found in alarms for alarm in found]


async def run_here(options: RunOptions) -> list[Matrix]:
    """Run all in this process, each kind of work in one piece: between pieces, all wait for the slowest."""
    found = []
    for dialect in options.dialects:
        plan = make_plan(dialect, await clean_traffic(dialect, options.at_once), options.only, options.sample)
        matrix = Matrix(plan, is_whole=options.is_whole)
        for piece in plan.pieces(options.with_free, sys.maxsize):
            matrix.add(*await done(piece, options.within, options.at_once))
        found.append(matrix)
    return found


def run_apart(options: RunOptions, processes: int, advance: Advance) -> list[Matrix]:
    """Run all in processes of their own; `advance` is called as the work goes on."""
    strangers = set(multiprocessing.active_children())
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _be_quiet) as pool:
        try:
            return _PoolRun(options, pool, advance).run()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - strangers:
                child.terminate()
            raise


class _PoolRun:
    """Hands out the work: first the clean runs, then what each of them makes necessary."""

    def __init__(self, options: RunOptions, pool: ProcessPoolExecutor, advance: Advance) -> None:
        self._options = options
        self._pool = pool
        self._advance = advance
        self._matrices: dict[str, Matrix] = {}
        self._running: dict[Future[Any], tuple[str, int]] = {}

    def run(self) -> list[Matrix]:
        for dialect in self._options.dialects:
            self._hand(dialect, 1, _run_cleanly, dialect, self._options.at_once)
        while self._running:
            finished, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in finished:
                self._take(future)
        return [self._matrices[dialect] for dialect in self._options.dialects]

    def _hand(self, dialect: str, size: int, work: Callable[..., Any], *given: Any) -> None:
        self._running[self._pool.submit(work, *given)] = (dialect, size)
        self._advance(dialect, 0, size)

    def _take(self, future: Future[Any]) -> None:
        dialect, size = self._running.pop(future)
        result = future.result()
        if isinstance(result, Traffic):
            self._begin(make_plan(dialect, result, self._options.only, self._options.sample))
        else:
            self._matrices[dialect].add(*result)
        self._advance(dialect, size, 0)

    def _begin(self, plan: Plan) -> None:
        self._matrices[plan.dialect] = Matrix(plan, is_whole=self._options.is_whole)
        for piece in plan.pieces(self._options.with_free):
            self._hand(plan.dialect, piece.size, _do, piece, self._options.within, self._options.at_once)


def _be_quiet() -> None:
    """A wrong server logs its own failures, which nobody needs to read."""
    logging.disable(logging.CRITICAL)


def _run_cleanly(dialect: str, at_once: int) -> Traffic:
    return run_jumping(clean_traffic(dialect, at_once))


def _do(piece: Piece, within: float, at_once: int) -> tuple[list[FlawResult], list[FlawResult]]:
    return run_jumping(done(piece, within, at_once))


def listed(dialects: Sequence[str], only: Sequence[str]) -> list[Plan]:
    """The plans alone; no flaw is examined."""
    return [make_plan(dialect, _run_cleanly(dialect, AT_ONCE), only) for dialect in dialects]
