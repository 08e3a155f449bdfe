"""The examiner of flaws: cases are put to a damaged server, the likeliest to fail first, until one of them fails.

A flaw that breaks a MUST is killed by a case that decides a MUST and fails. A case that can no longer be put is no
kill: it makes an examination incomplete, which says that something is wrong but not what; it is counted apart
(`untestable`). Flaws that must be tolerated are carried out together, since no case may mind any of them; only where a
case fails are they tried one by one, with more time, to name the one that was minded.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conformance.faults.kill.case_runner import CaseRunner
from conformance.faults.kill.flaw import Flaw
from conformance.faults.kill.generation import visitors
from conformance.faults.kill.injector import Injector
from conformance.faults.kill.orders import Orders
from conformance.faults.kill.traffic import Traffic
from conformance.kit.verdict import CaseResult, Outcome

T = TypeVar("T")
PATIENT = 5.0
FOR_KILLING = 1.0
AT_ONCE = 6
LATEST = 3
CONFIRMING = 3


@dataclass(frozen=True)
class FlawCases:
    """One flaw and the cases that may notice it, the likeliest first."""

    flaw: Flaw
    cases: tuple[str, ...]


@dataclass(frozen=True)
class FlawResult:
    """What came of one flaw."""

    name: str
    killer: str | None = None
    remark: str = ""
    requirements: tuple[str, ...] = ()
    tried: int = 0
    untestable: tuple[str, ...] = ()
    strikes: int = 0

    @property
    def is_killed(self) -> bool:
        return self.killer is not None


@dataclass
class RecentKillers:
    """Which cases killed last at a place, and flaws of a kind: they are asked first the next time."""

    killers: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def ordered(self, trial: FlawCases) -> list[str]:
        known = [name for about in _about(trial.flaw) for name in self.killers.get(about, ())[:LATEST]]
        return list(dict.fromkeys(name for name in [*known, *trial.cases] if name in trial.cases))

    def note(self, flaw: Flaw, case: str) -> None:
        for about in _about(flaw):
            before = self.killers.get(about, [])
            self.killers[about] = [case, *(name for name in before if name != case)]


def _about(flaw: Flaw) -> tuple[tuple[str, str], ...]:
    return (flaw.kind, flaw.place), (flaw.family, flaw.place), (flaw.kind, flaw.channel)


class FlawExaminer:
    """Examines flaws of one dialect: does a case notice them, and is what must be tolerated tolerated?"""

    def __init__(self, case_runner: CaseRunner, orders: Orders, within: float = FOR_KILLING) -> None:
        self._case_runner = case_runner
        self._orders = orders
        self._within = within
        self._recent = RecentKillers()

    def cases_for(self, traffic: Traffic, flaw: Flaw) -> FlawCases:
        """The flaw with the MUST cases that see it: the likeliest to fail first, then the quick."""
        ranks = self._ranked(traffic, flaw)
        come = [name for name in visitors(traffic, flaw) if self._case_runner.binds(self._case_runner.cases[name])]
        order = sorted(come, key=lambda name: (ranks.get(name, len(ranks)), traffic.seconds[name], name))
        return FlawCases(flaw, tuple(order))

    def _ranked(self, traffic: Traffic, flaw: Flaw) -> dict[str, int]:
        """Those that hold the place to a schema, all alike; where no schema could mind, the watchers in their order."""
        if flaw.has_shape:
            return dict.fromkeys(traffic.judges.get(flaw.place, ()), 0)
        return {name: place for place, name in enumerate(self._orders.watchers)}

    async def examine(self, trial: FlawCases) -> FlawResult:
        """Put case after case until one fails."""
        injector = Injector([trial.flaw], self._orders, self._case_runner.setup.naming)
        untestable: list[str] = []
        tried = 0
        async with self._case_runner.damaged(injector) as url:
            for name in self._recent.ordered(trial):
                tried += 1
                result = await self._put(name, url)
                if self._case_runner.musts(result.failed):
                    self._recent.note(trial.flaw, name)
                    return self._killed(trial.flaw.name, result, tried, untestable, injector.strikes)
                if result.outcome is Outcome.NOT_TESTABLE:
                    untestable.append(f"{name}: {result.remark}")
        return FlawResult(trial.flaw.name, tried=tried, untestable=tuple(untestable), strikes=injector.strikes)

    async def _put(self, name: str, url: str) -> CaseResult:
        """What a case finds; a failure that took a whole wait may be this machine's and is tried again, slower."""
        result = await self._case_runner.put(name, url, self._within, clears=False)
        if result.failed and result.seconds >= self._within:
            return await self._case_runner.put(name, url, self._within * CONFIRMING, clears=False)
        return result

    def _killed(
        self, name: str, result: CaseResult, tried: int, untestable: Sequence[str], strikes: int
    ) -> FlawResult:
        musts = tuple(sorted(self._case_runner.musts(result.failed)))
        return FlawResult(name, result.name, result.remark, musts, tried, tuple(untestable), strikes)

    async def examine_fault(self, name: str) -> FlawResult:
        """A server that was written wrong: its cases, then others, until all the MUSTs it must fail have failed."""
        fault = self._case_runner.setup.faults[name]
        wanted = self._case_runner.musts(fault.requirements) or set(fault.requirements)
        others = [case.name for case in self._case_runner.cases.values() if wanted.intersection(case.requirements)]
        failed: set[str] = set()
        killer, remark, tried = None, "", 0
        for case in dict.fromkeys((*fault.cases, *others)):
            async with self._case_runner.wrong(fault) as url:
                result = await self._case_runner.put(case, url, PATIENT, clears=False)
            tried += 1
            if broken := wanted.intersection(result.failed):
                killer, remark = killer or result.name, remark or result.remark
                failed |= broken
            if failed >= wanted:
                break
        return FlawResult(f"hand {name}", killer if failed >= wanted else None, remark, tuple(sorted(failed)), tried)

    # -- what must be tolerated ----------------------------------------------------------------------------------------

    async def objection(self, flaws: Sequence[Flaw], case: str, within: float | None = None) -> str | None:
        """What a case has against flaws that it must tolerate, all of them at once; None if nothing."""
        injector = Injector(flaws, self._orders, self._case_runner.setup.naming)
        async with self._case_runner.damaged(injector) as url:
            result = await self._case_runner.put(case, url, within or self._within)
        return None if result.is_clean else f"{case}: {result.outcome}: {result.remark}"

    async def alarms(self, flaws: Sequence[Flaw], case: str) -> list[FlawResult]:
        """The flaws that the case minds though it must not: named one by one, or together if it is the mixture."""
        if await self.objection(flaws, case) is None:
            return []
        found = [(flaw, await self.objection([flaw], case, PATIENT)) for flaw in flaws]
        alone = [FlawResult(flaw.name, case, remark) for flaw, remark in found if remark is not None]
        if alone or (remark := await self.objection(flaws, case, PATIENT)) is None:
            return alone
        return [FlawResult(" + ".join(flaw.name for flaw in flaws[:3]) + " …", case, remark)]


def bundles(flaws: Iterable[Flaw]) -> dict[str, list[Flaw]]:
    """Flaws to be tolerated, in groups that do not disturb each other: fields all at once, each framing by itself."""
    groups: dict[str, list[Flaw]] = {}
    for flaw in flaws:
        groups.setdefault("fields" if flaw.family == "field" else flaw.name, []).append(flaw)
    return groups


def bundle_cases(traffic: Traffic, group: Iterable[Flaw]) -> dict[str, list[Flaw]]:
    """The cases that come by any flaw of the group, each with the flaws it comes by."""
    met: dict[str, list[Flaw]] = {}
    for flaw in group:
        for case in sorted(visitors(traffic, flaw)):
            met.setdefault(case, []).append(flaw)
    return met


async def several(work: Iterable[Coroutine[Any, Any, T]], at_once: int = AT_ONCE) -> list[T]:
    """The results of these coroutines in their order; a few run at a time."""
    places = asyncio.Semaphore(at_once)

    async def one(item: Coroutine[Any, Any, T]) -> T:
        async with places:
            return await item

    return list(await asyncio.gather(*(one(item) for item in work)))
