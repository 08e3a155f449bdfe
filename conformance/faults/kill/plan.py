"""The plan of one dialect: its traffic, its flaws, and the work they make, in pieces that any process can do."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import TypeVar

from conformance.faults.kill.case_runner import case_runner_of
from conformance.faults.kill.examiner import FlawCases, FlawExaminer, bundle_cases, bundles
from conformance.faults.kill.flaw import Expectation, Flaw
from conformance.faults.kill.generation import FlawGenerator
from conformance.faults.kill.orders import Orders, read_orders
from conformance.faults.kill.traffic import Traffic

T = TypeVar("T")
PIECE = 24


@dataclass(frozen=True)
class Trial:
    """A case, and flaws it must tolerate all at once."""

    flaws: tuple[Flaw, ...]
    case: str


@dataclass(frozen=True)
class Piece:
    """Some of the work: flaws, faults written by hand, and trials of what must be tolerated."""

    dialect: str
    flaw_cases: tuple[FlawCases, ...] = ()
    by_hand: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()

    @property
    def size(self) -> int:
        return len(self.flaw_cases) + len(self.by_hand) + len(self.trials)


@dataclass
class Plan:
    """What is to be done for one dialect."""

    dialect: str
    traffic: Traffic
    flaws: list[Flaw]
    chosen: list[Flaw]
    hands: list[str]
    unheld: list[str]
    """Places with a body that no MUST case holds to a schema."""
    idle_rules: list[str]

    def expecting(self, expectation: Expectation) -> list[Flaw]:
        return [flaw for flaw in self.chosen if flaw.expectation is expectation]

    def pieces(self, with_free: bool = False, size: int = PIECE) -> list[Piece]:
        """The work, cut up; flaws of one place stay together."""
        examiner = FlawExaminer(case_runner_of(self.dialect), read_orders(self.dialect))
        wanted = [flaw for flaw in self.chosen if flaw.expectation is Expectation.BREAKS or with_free]
        examined = [flaw for flaw in wanted if flaw.expectation is not Expectation.TOLERATED]
        flaw_cases = [examiner.cases_for(self.traffic, flaw) for flaw in sorted(examined, key=lambda flaw: flaw.place)]
        return [
            *(Piece(self.dialect, flaw_cases=tuple(part)) for part in _cut(flaw_cases, size)),
            *(Piece(self.dialect, trials=tuple(part)) for part in _cut(self._trials(), size)),
            *(Piece(self.dialect, by_hand=tuple(part)) for part in _cut(self.hands, size)),
        ]

    def _trials(self) -> list[Trial]:
        groups = bundles(self.expecting(Expectation.TOLERATED))
        met = [bundle_cases(self.traffic, group) for group in groups.values()]
        return [Trial(tuple(flaws), case) for cases in met for case, flaws in cases.items()]


def make_plan(dialect: str, traffic: Traffic, only: Sequence[str] = (), sample: int | None = None) -> Plan:
    """The plan for all flaws, for those matching a glob, or for a sample of them."""
    orders: Orders = read_orders(dialect)
    generator = FlawGenerator(dialect, traffic, orders)
    flaws = generator.flaws()
    chosen = [flaw for flaw in flaws if not only or any(fnmatchcase(flaw.name, glob) for glob in only)]
    hands = [name for name in case_runner_of(dialect).setup.faults if not only or _is_meant(f"hand {name}", only)]
    return Plan(
        dialect=dialect,
        traffic=traffic,
        flaws=flaws,
        chosen=chosen if sample is None else spread(chosen, sample),
        hands=hands if sample is None else [],
        unheld=[place for place in traffic.places if not generator.holds(place)],
        idle_rules=orders.idle_rules([flaw.name for flaw in flaws]),
    )


def spread(flaws: Iterable[Flaw], size: int) -> list[Flaw]:
    """A sample that is always the same, taken from every kind in turn; free flaws are left out."""
    kinds: dict[str, list[Flaw]] = defaultdict(list)
    for flaw in sorted(flaws, key=lambda flaw: hashlib.sha256(flaw.name.encode()).digest()):
        if flaw.expectation is not Expectation.FREE:
            kinds[flaw.kind].append(flaw)
    rounds = zip_longest(*(kinds[kind] for kind in sorted(kinds)))
    return [flaw for turn in rounds for flaw in turn if flaw is not None][:size]


def _is_meant(name: str, only: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in only)


def _cut(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
