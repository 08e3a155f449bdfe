"""Who does the work: here and now, or processes of their own, a few things at a time in each."""

import asyncio
import logging
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Any

from conformance.faults.kill.atlas import Atlas
from conformance.faults.kill.bench import bench_of
from conformance.faults.kill.hunt import AT_ONCE, FOR_KILLING, PATIENT, Catch, Hunter, several
from conformance.faults.kill.learning import learn
from conformance.faults.kill.matrix import Matrix
from conformance.faults.kill.orders import read_orders
from conformance.faults.kill.plan import Piece, Plan, make_plan


@dataclass(frozen=True)
class Wish:
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


Watcher = Callable[[str, int, int], None]
"""Told of a dialect how much more is done, and how much more there is to do."""


@cache
def hunter_of(dialect: str, within: float) -> Hunter:
    return Hunter(bench_of(dialect), read_orders(dialect), within)


async def learned(dialect: str, at_once: int) -> Atlas:
    """The atlas of the dialect."""
    return await learn(bench_of(dialect), read_orders(dialect).walk, PATIENT, at_once)


async def done(piece: Piece, within: float, at_once: int) -> tuple[list[Catch], list[Catch]]:
    """What came of a piece of work: catches, and false alarms."""
    hunter = hunter_of(piece.dialect, within)
    caught = await several([hunter.hunt(quarry) for quarry in piece.quarries], at_once)
    by_hand = await several([hunter.hunt_by_hand(name) for name in piece.by_hand], at_once)
    alarms = await several([hunter.alarms(trial.flaws, trial.case) for trial in piece.trials], at_once)
    return [*caught, *by_hand], [alarm for found in alarms for alarm in found]


async def run_here(wish: Wish) -> list[Matrix]:
    """All in this process, and each kind of work in one piece: between pieces, all wait for the slowest."""
    found = []
    for dialect in wish.dialects:
        plan = make_plan(dialect, await learned(dialect, wish.at_once), wish.only, wish.sample)
        matrix = Matrix(plan, is_whole=wish.is_whole)
        for piece in plan.pieces(wish.with_free, sys.maxsize):
            matrix.add(*await done(piece, wish.within, wish.at_once))
        found.append(matrix)
    return found


def run_apart(wish: Wish, processes: int, watcher: Watcher) -> list[Matrix]:
    """All in processes of their own; the watcher is told as the work goes on."""
    strangers = set(multiprocessing.active_children())
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _be_quiet) as pool:
        try:
            return _Shift(wish, pool, watcher).run()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - strangers:
                child.terminate()
            raise


class _Shift:
    """Hands out the work: first the clean runs, then what each of them makes necessary."""

    def __init__(self, wish: Wish, pool: ProcessPoolExecutor, watcher: Watcher) -> None:
        self._wish = wish
        self._pool = pool
        self._watcher = watcher
        self._matrices: dict[str, Matrix] = {}
        self._running: dict[Future[Any], tuple[str, int]] = {}

    def run(self) -> list[Matrix]:
        for dialect in self._wish.dialects:
            self._hand(dialect, 1, _learn, dialect, self._wish.at_once)
        while self._running:
            finished, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in finished:
                self._take(future)
        return [self._matrices[dialect] for dialect in self._wish.dialects]

    def _hand(self, dialect: str, size: int, work: Callable[..., Any], *given: Any) -> None:
        self._running[self._pool.submit(work, *given)] = (dialect, size)
        self._watcher(dialect, 0, size)

    def _take(self, future: Future[Any]) -> None:
        dialect, size = self._running.pop(future)
        result = future.result()
        if isinstance(result, Atlas):
            self._begin(make_plan(dialect, result, self._wish.only, self._wish.sample))
        else:
            self._matrices[dialect].add(*result)
        self._watcher(dialect, size, 0)

    def _begin(self, plan: Plan) -> None:
        self._matrices[plan.dialect] = Matrix(plan, is_whole=self._wish.is_whole)
        for piece in plan.pieces(self._wish.with_free):
            self._hand(plan.dialect, piece.size, _do, piece, self._wish.within, self._wish.at_once)


def _be_quiet() -> None:
    """What a wrong server logs about its own failures is no news."""
    logging.disable(logging.CRITICAL)


def _learn(dialect: str, at_once: int) -> Atlas:
    return asyncio.run(learned(dialect, at_once))


def _do(piece: Piece, within: float, at_once: int) -> tuple[list[Catch], list[Catch]]:
    return asyncio.run(done(piece, within, at_once))


def listed(dialects: Sequence[str], only: Sequence[str]) -> list[Plan]:
    """The plans alone, without any hunt."""
    return [make_plan(dialect, _learn(dialect, AT_ONCE), only) for dialect in dialects]
