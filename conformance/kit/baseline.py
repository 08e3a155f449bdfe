"""Baselines: the known failures of a server, each with a reason and the last day on which the entry is valid."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, model_validator

from conformance.kit.case import Case
from conformance.kit.documents import DocumentError, line_of, read_document
from conformance.kit.requirement import Catalogue
from conformance.kit.verdict import CaseResult, Finding, Outcome, Report, Standing

OUTCOMES = {"failed": Outcome.FAILED, "not testable": Outcome.NOT_TESTABLE}


class Judged(Protocol):
    """What a baseline is about: a catalogue, and cases by name."""

    @property
    def catalogue(self) -> Catalogue: ...
    @property
    def cases(self) -> tuple[Case, ...]: ...


class Entry(BaseModel):
    """One known failure: of a requirement, or of one case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requirement: str | None = None
    case: str | None = None
    outcome: str = Field(default="failed", pattern="^(failed|not testable)$")
    reason: str = Field(min_length=10)
    expires: date

    @model_validator(mode="after")
    def _names_one_thing(self) -> "Entry":
        if (self.requirement is None) == (self.case is None):
            raise ValueError("say either `requirement` or `case`")
        return self

    @property
    def name(self) -> str:
        return self.requirement or self.case or ""

    @property
    def field(self) -> str:
        return "requirement" if self.requirement else "case"


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    dialect: str
    known_failures: tuple[Entry, ...]


@dataclass(frozen=True)
class Baseline:
    """The known failures of a server, and the lines of the file that list them."""

    entries: tuple[Entry, ...]
    places: tuple[str, ...]

    def held_against(self, report: Report, today: date | None = None) -> Report:
        """The report, compared with the baseline: known failures, entries that pass, entries that have expired."""
        day = today or datetime.now(UTC).date()
        known = {item.requirement.id: self._reason(item) for item in report.findings if self._knows(item)}
        for item in report.blocked:
            if all(name in known for name in item.because):
                known.setdefault(item.requirement.id, f"not testable because {item.because[0]} failed, which is known")
        return report.compared(Standing(known, tuple(self._complaints(report, day))))

    def _knows(self, finding: Finding) -> bool:
        """Whether the baseline lists everything that keeps the requirement from passing."""
        if finding.outcome not in OUTCOMES.values():
            return False
        return self._entry(finding) is not None or all(self._excuses(result) for result in finding.grave)

    def _entry(self, finding: Finding) -> Entry | None:
        name, outcome = finding.requirement.id, finding.outcome
        return next((item for item in self.entries if (item.requirement, item.outcome) == (name, outcome)), None)

    def _excuses(self, result: CaseResult) -> bool:
        return any((item.case, item.outcome) == (result.name, result.outcome) for item in self.entries)

    def _reason(self, finding: Finding) -> str:
        cases = {result.name for result in finding.grave}
        found = self._entry(finding)
        return found.reason if found else "; ".join(item.reason for item in self.entries if item.case in cases)

    def _complaints(self, report: Report, today: date) -> Iterator[str]:
        passed = {item.requirement.id for item in report.of(Outcome.PASSED)}
        passed |= {result.name for result in report.results if result.outcome is Outcome.PASSED}
        for place, entry in zip(self.places, self.entries, strict=True):
            if entry.name in passed:
                yield f"{place}: {entry.name} passes; take it out of the baseline"
            if entry.expires < today:
                yield f"{place}: the entry for {entry.name} expired on {entry.expires}; mend the server or renew it"


def read_baseline(path: Path, suite: Judged) -> Baseline:
    """The baseline in a file; DocumentError names every wrong id and shape with its line."""
    document = read_document(path, _Document)
    text = path.read_text(encoding="utf-8")
    entries = document.known_failures
    lines = [line_of(text, ("known_failures", number, item.field)) for number, item in enumerate(entries)]
    problems = [(_problem(item, suite), line) for item, line in zip(entries, lines, strict=True)]
    wrong = [(problem, line) for problem, line in [*_twice(entries, lines), *problems] if problem]
    if document.dialect != suite.catalogue.dialect:
        told = f"dialect: it is a baseline of {document.dialect}, and {suite.catalogue.dialect} is examined"
        wrong.insert(0, (told, line_of(text, ("dialect",))))
    if wrong:
        raise DocumentError(path, [problem for problem, _ in wrong], [line for _, line in wrong])
    return Baseline(entries, tuple(f"{path}:{line}" for line in lines))


def _problem(entry: Entry, suite: Judged) -> str:
    known = suite.catalogue.ids if entry.requirement else {case.name for case in suite.cases}
    if entry.name in known:
        return ""
    near = get_close_matches(entry.name, sorted(known), n=1)
    return f"there is no {entry.field} {entry.name!r}" + (f"; do you mean {near[0]!r}?" if near else "")


def _twice(entries: tuple[Entry, ...], lines: list[int | None]) -> Iterator[tuple[str, int | None]]:
    names = [entry.name for entry in entries]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield f"{name} is listed more than once", lines[number]
