"""Verdicts: what came of each case, of each requirement, and of the whole examination."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from conformance.kit.requirement import Level, Requirement


class Outcome(StrEnum):
    """What can come of a case or a requirement."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TESTABLE = "not testable"
    NOT_APPLICABLE = "not applicable"


class Verdict(StrEnum):
    """What can come of an examination."""

    CONFORMS = "conforms"
    FAILS = "fails"
    INCOMPLETE = "incomplete"


EXIT_CODES = {Verdict.CONFORMS: 0, Verdict.FAILS: 1, Verdict.INCOMPLETE: 3}
LEFT_OUT = "left out: budget"
GRAVITY = (Outcome.FAILED, Outcome.NOT_TESTABLE, Outcome.PASSED)


@dataclass(frozen=True)
class CaseResult:
    """What one case found, with the traffic it found it in."""

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
    """What it has made on the server and could not delete."""

    def told(self, hide: Callable[[str], str]) -> "CaseResult":
        """The same result, with all that the server said passed through a redaction."""
        return replace(
            self,
            transcript=hide(self.transcript),
            expected=self.expected and hide(self.expected),
            seen=self.seen and hide(self.seen),
            reason=self.reason and hide(self.reason),
            left=tuple(map(hide, self.left)),
        )

    @property
    def remark(self) -> str:
        """Why it did not pass, in one line; empty if it passed."""
        if self.outcome is Outcome.FAILED:
            return f"expected {self.expected}; seen: {self.seen}"
        return self.reason or ""


@dataclass(frozen=True)
class Finding:
    """One requirement and the cases that decided it: the gravest of their outcomes is its own."""

    requirement: Requirement
    results: tuple[CaseResult, ...]

    @property
    def outcome(self) -> Outcome:
        if self.requirement.not_applicable:
            return Outcome.NOT_APPLICABLE
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
class Standing:
    """How a report stands to a baseline: what was known, and what the baseline has wrong by now."""

    known: Mapping[str, str]
    """The requirements that do not pass, as the baseline says, each with its reason."""
    complaints: tuple[str, ...] = ()
    """The entries that no longer hold, in words."""


@dataclass(frozen=True)
class Report:
    """A finished examination."""

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

    @property
    def verdict(self) -> Verdict:
        """Only the MUSTs decide; a MUST that could not be put leaves the examination incomplete."""
        return _verdict(self.findings)

    @property
    def exit_code(self) -> int:
        """What a script is told: the verdict, leaving out what the baseline knew; 1 if the baseline is wrong."""
        if self.standing is None:
            return EXIT_CODES[self.verdict]
        news = (item for item in self.findings if item.requirement.id not in self.standing.known)
        return EXIT_CODES[Verdict.FAILS if self.standing.complaints else _verdict(news)]

    @property
    def left(self) -> tuple[str, ...]:
        """What the examination has made on the server and could not delete."""
        return tuple(dict.fromkeys(path for result in self.results for path in result.left))

    @property
    def left_out(self) -> tuple[Finding, ...]:
        """The requirements that were not decided because the budget was spent."""
        undecided = self.of(Outcome.NOT_TESTABLE)
        return tuple(item for item in undecided if any(it.remark.startswith(LEFT_OUT) for it in item.grave))

    def judged_by(self, version: str) -> "Report":
        """The same report, naming the set of requirements."""
        return replace(self, requirements=version)

    def compared(self, standing: Standing) -> "Report":
        """The same report, held against a baseline."""
        return replace(self, standing=standing)

    def of(self, outcome: Outcome) -> tuple[Finding, ...]:
        return tuple(item for item in self.findings if item.outcome is outcome)

    def by_level(self) -> dict[str, dict[Outcome, int]]:
        """How many of each outcome, per level."""
        return _counts((item.requirement.level.value, item.outcome) for item in self.findings)

    def by_section(self) -> dict[str, dict[Outcome, int]]:
        """How many of each outcome, per section."""
        return _counts((item.requirement.section, item.outcome) for item in self.findings)


def _verdict(findings: Iterable[Finding]) -> Verdict:
    outcomes = {item.outcome for item in findings if item.requirement.level is Level.MUST}
    if Outcome.FAILED in outcomes:
        return Verdict.FAILS
    return Verdict.INCOMPLETE if Outcome.NOT_TESTABLE in outcomes else Verdict.CONFORMS


def _counts(pairs: Iterable[tuple[str, Outcome]]) -> dict[str, dict[Outcome, int]]:
    counted = Counter(pairs)
    names = dict.fromkeys(name for name, _ in counted)
    return {name: {outcome: counted[name, outcome] for outcome in Outcome} for name in names}
