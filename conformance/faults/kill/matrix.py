"""The matrix: what came of every flaw of a dialect, and whether it is good enough."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from conformance.faults.kill.case_runner import case_runner_of
from conformance.faults.kill.examiner import FlawResult
from conformance.faults.kill.flaw import Expectation
from conformance.faults.kill.plan import Plan
from conformance.faults.kill.survivors import read_survivors

TARGET = 0.97
HAND = "hand"


@dataclass
class Matrix:
    """The results of one dialect."""

    plan: Plan
    results: dict[str, FlawResult] = field(default_factory=dict)
    alarms: list[FlawResult] = field(default_factory=list)
    is_whole: bool = True
    """Whether everything was tried; a choice or a sample cannot show that every MUST kills."""

    def add(self, results: Iterable[FlawResult], alarms: Iterable[FlawResult]) -> None:
        self.results |= {result.name: result for result in results}
        self.alarms += alarms

    @property
    def broken(self) -> list[FlawResult]:
        """What came of the flaws that break a MUST."""
        names = [flaw.name for flaw in self.plan.expecting(Expectation.BREAKS)]
        return [self.results[name] for name in names if name in self.results]

    @property
    def survivors(self) -> list[FlawResult]:
        return [result for result in self.broken if not result.is_killed]

    @property
    def by_hand(self) -> list[FlawResult]:
        return [result for name, result in self.results.items() if name.startswith(f"{HAND} ")]

    @property
    def free(self) -> list[FlawResult]:
        names = [flaw.name for flaw in self.plan.expecting(Expectation.FREE)]
        return [self.results[name] for name in names if name in self.results]

    @property
    def share(self) -> float:
        """Of the flaws that break a MUST, those that were killed."""
        return 1 - len(self.survivors) / len(self.broken) if self.broken else 1.0

    @property
    def kills(self) -> dict[str, list[str]]:
        """Every MUST, and the flaws and faults it killed."""
        killed: dict[str, list[str]] = {name: [] for name in sorted(case_runner_of(self.plan.dialect).musts())}
        for result in [*self.broken, *self.by_hand]:
            for name in result.requirements if result.is_killed else ():
                killed.setdefault(name, []).append(result.name)
        return killed

    def table(self) -> dict[str, Counter[str]]:
        """Every MUST, and how many of each family it killed."""
        family = {flaw.name: flaw.family for flaw in self.plan.flaws}
        counted: dict[str, Counter[str]] = defaultdict(Counter)
        for requirement, names in self.kills.items():
            counted[requirement].update(family.get(name, HAND) for name in names)
        return counted

    def complaints(self) -> list[str]:
        """What keeps the run from being good; empty if it is."""
        generated = [flaw.name for flaw in self.plan.flaws if flaw.expectation is Expectation.BREAKS]
        examined, survived = [result.name for result in self.broken], [result.name for result in self.survivors]
        found = read_survivors(self.plan.dialect).complaints(generated, examined, survived)
        found += [f"false alarm: {result.name}: {result.remark}" for result in self.alarms]
        found += [f"{result.name} is not caught by its cases" for result in self.by_hand if not result.is_killed]
        found += [f"orders.yaml has a rule for {rule!r}, but there is no such flaw" for rule in self.plan.idle_rules]
        if self.is_whole:
            found += [f"{name} kills nothing" for name, killed in self.kills.items() if not killed]
            if self.share < TARGET:
                found.append(f"only {self.share:.1%} of the flaws that break a MUST are killed, not {TARGET:.0%}")
        return found
