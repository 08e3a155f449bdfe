"""Puts the whole suite to servers with one flaw each, to see what fails."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from conformance.faults.fault import Fault
from conformance.faults.kill.attribution import FAULTS, MUTANTS, Attribution, FlawEffect, effect_in
from conformance.faults.kill.case_runner import case_runner_of
from conformance.faults.kill.clean_run import run_cleanly
from conformance.faults.kill.examiner import AT_ONCE, FOR_KILLING, PATIENT
from conformance.faults.kill.flaw import Expectation, Flaw
from conformance.faults.kill.injector import Injector
from conformance.faults.kill.orders import read_orders
from conformance.faults.kill.plan import make_plan, spread
from conformance.faults.kill.setups import KEY, setup_of
from conformance.faults.local_server import served
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Report

T = TypeVar("T")
FLAWS_AT_ONCE = 2
Advance = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Choice:
    """Which flaws are tried: those of these names or globs, and of them a sample."""

    only: tuple[str, ...] = ()
    sample: int | None = None
    within: float = FOR_KILLING

    def of(self, faults: Iterable[str]) -> list[str]:
        """The chosen faults; a sample is always the same, and a larger sample has all of a smaller one."""
        meant = (name for name in faults if not self.only or any(fnmatchcase(name, glob) for glob in self.only))
        ordered = sorted(meant, key=lambda name: hashlib.sha256(name.encode()).digest())
        return ordered if self.sample is None else ordered[: self.sample]


async def effect_of(dialect: str, fault: Fault, within: float) -> FlawEffect:
    """Put the whole suite to the server with this fault."""
    setup = setup_of(dialect)
    server = setup.wrong(fault)
    async with served(server) as url:
        report = await _report(dialect, server, url, within)
    return effect_in(report, fault.name, fault.requirements)


async def effect_of_mutant(dialect: str, flaw: Flaw, within: float) -> FlawEffect:
    """Put the whole suite to a correct server behind a proxy that damages what it says."""
    case_runner = case_runner_of(dialect)
    injector = Injector([flaw], read_orders(dialect), case_runner.setup.naming)
    async with case_runner.damaged(injector) as url:
        report = await _report(dialect, case_runner.setup.server(), url, within)
    return effect_in(report, flaw.name, flaw.owners)


async def _report(dialect: str, server: object, url: str, within: float) -> Report:
    setup, suite = setup_of(dialect), load_suite(dialect)
    target = Target(url, KEY, within, allow_destructive=True, is_disposable=True)
    return await Runner(suite, target, setup.profile(suite, server)).run(suite.catalogue.requirements)


async def attribute(dialect: str, choice: Choice, advance: Advance) -> Attribution:
    """Put the whole suite to the chosen faults of a dialect."""
    faults = setup_of(dialect).faults
    names = choice.of(faults)
    found = await _each(dialect, names, lambda name: effect_of(dialect, faults[name], choice.within), advance)
    return Attribution(dialect, tuple(found), FAULTS)


async def attribute_mutants(dialect: str, choice: Choice, advance: Advance) -> Attribution:
    """Put the whole suite to a sample of the mutants that break a MUST, from every kind in turn.

    They are given as long as a clean server: what is lost makes a slow turn silent for longer than a killer waits.
    """
    orders = read_orders(dialect)
    traffic = await run_cleanly(case_runner_of(dialect), orders.walk, PATIENT, AT_ONCE)
    plan = make_plan(dialect, traffic, choice.only)
    flaws = spread(plan.expecting(Expectation.BREAKS), choice.sample or len(plan.flaws))
    return await attribute_flaws(dialect, flaws, max(choice.within, PATIENT), advance)


async def attribute_flaws(dialect: str, flaws: Sequence[Flaw], within: float, advance: Advance) -> Attribution:
    """Put the whole suite to these flaws."""
    found = await _each(dialect, flaws, lambda flaw: effect_of_mutant(dialect, flaw, within), advance)
    return Attribution(dialect, tuple(found), MUTANTS)


async def _each(
    dialect: str, items: Sequence[T], effect: Callable[[T], Awaitable[FlawEffect]], advance: Advance
) -> list[FlawEffect]:
    """The effects of all, a few at a time."""
    places = asyncio.Semaphore(FLAWS_AT_ONCE)
    advance(dialect, 0, len(items))

    async def one(item: T) -> FlawEffect:
        async with places:
            found = await effect(item)
        advance(dialect, 1, 0)
        return found

    return list(await asyncio.gather(*map(one, items)))
