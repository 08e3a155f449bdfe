"""Verdicts: the outcome of each case, of each requirement, and of the whole examination."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from conformance.kit.departures import Departure, Reading
from conformance.kit.requirement import Level, Requirement


class Outcome(StrEnum):
    """The outcome of a case or a requirement."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TESTABLE = "not testable"
    NOT_APPLICABLE = "not applicable"
    NOT_OFFERED = "not offered"


class Verdict(StrEnum):
    """The verdict of an examination."""

    CONFORMS = "conforms"
    FAILS = "fails"
    INCOMPLETE = "incomplete"


EXIT_CODES = {Verdict.CONFORMS: 0, Verdict.FAILS: 1, Verdict.INCOMPLETE: 3}
LEFT_OUT = "left out: budget"
GRAVITY = (Outcome.FAILED, Outcome.NOT_TESTABLE, Outcome.PASSED)
BLOCKED = "blocked"
"""How a requirement is counted that is not testable because another one failed."""


@dataclass(frozen=True)
class CaseResult:
    """The result of one case, with its traffic."""

    name: str
    sentence: str
    requirements: tuple[str, ...]
    outcome: Outcome
    seconds: float
    transcript: str
    expected: str | None = None
    seen: str | None = None
    reason: str | None = None
    left: tuple[str, ...] = ()
    """What the case has created on the server and could not delete."""
    because: str | None = None
    """The requirement whose failure keeps the case from judging its own, or the others of its own."""
    departures: tuple[Departure, ...] = ()
    """Departures that the case has seen, from its own requirements or from others."""
    rest: Outcome | None = None
    """The outcome of its requirements that no departure names, if it is another one."""
    is_unanswered: bool = False
    """Whether the server left it without any answer."""
    readings: tuple[Reading, ...] = ()
    """Which readings of ambiguous sentences the server was seen to keep."""

    @property
    def failed(self) -> tuple[str, ...]:
        """The requirements that it shows to have failed, its own or others."""
        owners = [item.owner for item in self.departures]
        is_plain = self.outcome is Outcome.FAILED and self.rest is None
        return tuple(dict.fromkeys([*(self.requirements if is_plain else ()), *owners]))

    def toward(self, requirement: str) -> "CaseResult | None":
        """The outcome for one requirement; None if the case says nothing about it."""
        found = next((item for item in self.departures if item.owner == requirement), None)
        if found is not None:
            failure = replace(self, outcome=Outcome.FAILED, expected=found.expected, seen=found.seen)
            return replace(failure, reason=None, because=None, rest=None)
        if requirement not in self.requirements:
            return None
        return self if self.rest is None else replace(self, outcome=self.rest, expected=None, seen=None, rest=None)

    def told(self, hide: Callable[[str], str]) -> "CaseResult":
        """The same result, with all that the server said passed through a redaction."""
        return replace(
            self,
            transcript=hide(self.transcript),
            expected=self.expected and hide(self.expected),
            seen=self.seen and hide(self.seen),
            reason=self.reason and hide(self.reason),
            left=tuple(map(hide, self.left)),
            departures=tuple(Departure(it.owner, hide(it.expected), hide(it.seen)) for it in self.departures),
        )

    @property
    def is_clean(self) -> bool:
        """Whether the case passed without any departure."""
        return self.outcome is Outcome.PASSED and not self.departures

    @property
    def remark(self) -> str:
        """Why the case did not pass, in one line; empty if it passed."""
        if self.outcome is Outcome.FAILED:
            return f"expected {self.expected}; seen: {self.seen}"
        return self.reason or ""


@dataclass(frozen=True)
class Finding:
    """One requirement and the results of its cases: the gravest outcome counts."""

    requirement: Requirement
    results: tuple[CaseResult, ...]
    not_offered: str | None = None
    """Why the server is not held to it, if it belongs to a part of the protocol that the server does without."""
    readings: tuple[str, ...] = ()
    """Which readings of its sentence the server keeps, where the sentence allows several."""

    @property
    def because(self) -> tuple[str, ...]:
        """The requirements whose failure keeps it from being judged; empty if nothing or something else does."""
        if self.outcome is not Outcome.NOT_TESTABLE:
            return ()
        return tuple(dict.fromkeys(item.because for item in self.grave if item.because is not None))

    @property
    def is_unanswered(self) -> bool:
        """Whether it cannot be judged because the server said nothing at all when it was asked."""
        return bool(self.because) and any(item.is_unanswered for item in self.grave)

    @property
    def count(self) -> str:
        """The group in which the requirement is counted: its outcome, or blocked."""
        return BLOCKED if self.because else self.outcome.value

    @property
    def outcome(self) -> Outcome:
        if self.requirement.not_applicable:
            return Outcome.NOT_APPLICABLE
        if self.not_offered is not None:
            return Outcome.NOT_OFFERED
        outcomes = {result.outcome for result in self.results} or {Outcome.NOT_TESTABLE}
        return next(outcome for outcome in GRAVITY if outcome in outcomes)

    @property
    def grave(self) -> tuple[CaseResult, ...]:
        """The results that kept it from passing."""
        return tuple(item for item in self.results if item.outcome is not Outcome.PASSED)

    @property
    def seconds(self) -> float:
        return sum(result.seconds for result in self.results)


@dataclass(frozen=True)
class Cause:
    """A requirement that failed, and those that cannot be judged because it did."""

    finding: Finding
    blocked: tuple[Finding, ...]
    is_asked: bool = True
    """Whether it was asked for; if not, it is mentioned as the cause of others, and not counted."""


@dataclass(frozen=True)
class Standing:
    """A report compared with a baseline: known failures, and entries that no longer hold."""

    known: Mapping[str, str]
    """The requirements that do not pass, as the baseline says, each with its reason."""
    complaints: tuple[str, ...] = ()
    """The entries that no longer hold, in words."""


@dataclass(frozen=True)
class Report:
    """The result of an examination."""

    dialect: str
    title: str
    url: str
    started: datetime
    seconds: float
    findings: tuple[Finding, ...]
    results: tuple[CaseResult, ...]
    requirements: str | None = None
    """The version of the frozen set of requirements it was judged by."""
    standing: Standing | None = None
    aside: tuple[Finding, ...] = ()
    """Requirements that were not asked for, and failed all the same."""

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What failed, the MUSTs and those that block most first; each blocked requirement is under one cause."""
        blocked: dict[str, list[Finding]] = {}
        for finding in self.findings:
            if finding.because:
                blocked.setdefault(finding.because[0], []).append(finding)
        causes = [Cause(item, tuple(blocked.get(item.requirement.id, ()))) for item in self.of(Outcome.FAILED)]
        causes += [
            Cause(item, tuple(blocked[item.requirement.id]), is_asked=False)
            for item in self.aside
            if item.requirement.id in blocked
        ]
        order = list(Level)
        return tuple(sorted(causes, key=lambda it: (order.index(it.finding.requirement.level), -len(it.blocked))))

    @property
    def blocked(self) -> tuple[Finding, ...]:
        """The requirements that cannot be judged because another one failed."""
        return tuple(item for item in self.findings if item.because)

    @property
    def explained(self) -> str:
        """The number of causes and of the findings that they explain, in words; empty if nothing failed."""
        number = len(self.of(Outcome.FAILED)) + len(self.blocked)
        return f"{_amount(len(self.causes), 'cause')} {_amount(number, 'finding')}" if self.causes else ""

    @property
    def extent(self) -> str:
        """The number of cases and their duration, in words."""
        return f"{_amount(len(self.results), 'case')} in {self.seconds:.1f} s"

    @property
    def verdict(self) -> Verdict:
        """Only the MUSTs decide; a MUST that could not be put leaves the examination incomplete."""
        return _verdict(self.findings, self.aside)

    @property
    def exit_code(self) -> int:
        """The exit code for scripts: the verdict without the known failures; 1 if the baseline is wrong."""
        if self.standing is None:
            return EXIT_CODES[self.verdict]
        news = (item for item in self.findings if item.requirement.id not in self.standing.known)
        return EXIT_CODES[Verdict.FAILS if self.standing.complaints else _verdict(news, self.aside)]

    @property
    def left(self) -> tuple[str, ...]:
        """What the examination has created on the server and could not delete."""
        return tuple(dict.fromkeys(path for result in self.results for path in result.left))

    @property
    def left_out(self) -> tuple[Finding, ...]:
        """The requirements that were not decided because the budget was spent."""
        undecided = self.of(Outcome.NOT_TESTABLE)
        return tuple(item for item in undecided if any(it.remark.startswith(LEFT_OUT) for it in item.grave))

    def judged_by(self, version: str) -> "Report":
        """A copy of the report that names the set of requirements."""
        return replace(self, requirements=version)

    def compared(self, standing: Standing) -> "Report":
        """A copy of the report with its comparison to a baseline."""
        return replace(self, standing=standing)

    def of(self, outcome: Outcome) -> tuple[Finding, ...]:
        return tuple(item for item in self.findings if item.outcome is outcome)

    @property
    def readings(self) -> tuple[Finding, ...]:
        """The requirements whose sentences allow several readings, where the server was seen to keep one of them."""
        return tuple(item for item in self.findings if item.readings)

    def by_level(self) -> dict[str, dict[str, int]]:
        """How many of each outcome, per level, MUSTs first; what is blocked is counted apart."""
        ordered = sorted(self.findings, key=lambda item: list(Level).index(item.requirement.level))
        return _counts((item.requirement.level.value, item.count) for item in ordered)

    def by_section(self) -> dict[str, dict[str, int]]:
        """How many of each outcome, per section; what is blocked is counted apart."""
        return _counts((item.requirement.section, item.count) for item in self.findings)


def find(
    requirements: Iterable[Requirement], results: Iterable[CaseResult], unoffered: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """The finding for each of these requirements; `unoffered` are those of missing features, with reasons."""
    unoffered = unoffered or {}
    about: dict[str, list[CaseResult]] = {}
    everything = tuple(results)
    for result in everything:
        for name in dict.fromkeys([*result.requirements, *(item.owner for item in result.departures)]):
            about.setdefault(name, []).append(result)
    readings: dict[str, dict[str, None]] = {}
    for reading in (item for result in everything for item in result.readings):
        readings.setdefault(reading.owner, {})[reading.words] = None
    told = ((item, [result.toward(item.id) for result in about.get(item.id, ())]) for item in requirements)
    return tuple(
        Finding(
            item,
            tuple(view for view in views if view is not None),
            unoffered.get(item.id),
            tuple(readings.get(item.id, ())),
        )
        for item, views in told
    )


def _verdict(findings: Iterable[Finding], aside: Iterable[Finding]) -> Verdict:
    """The verdict on these; a MUST that is blocked by a failed MUST fails with it, even if that was not asked for.

    A MUST that was met with silence fails the server, too, whoever is charged with the silence.
    """
    musts = [item for item in findings if item.requirement.level is Level.MUST]
    outcomes = {item.outcome for item in musts}
    unasked = {item.requirement.id for item in aside if item.requirement.level is Level.MUST}
    if Outcome.FAILED in outcomes or any(item.is_unanswered or unasked.intersection(item.because) for item in musts):
        return Verdict.FAILS
    return Verdict.INCOMPLETE if Outcome.NOT_TESTABLE in outcomes else Verdict.CONFORMS


COUNTS = ("passed", "failed", BLOCKED, "not testable", "not offered", "not applicable")
"""What findings are counted as, in the order of the tables."""


def _counts(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    counted = Counter(pairs)
    names = dict.fromkeys(name for name, _ in counted)
    return {name: {count: counted[name, count] for count in COUNTS} for name in names}


def _amount(number: int, noun: str) -> str:
    """`1 cause explains`, `2 causes explain`; `1 finding`, `2 findings`; `1 case`, `2 cases`."""
    words = f"{number} {noun}" if number == 1 else f"{number} {noun}s"
    return words if noun != "cause" else f"{words} explain{'s' if number == 1 else ''}"
