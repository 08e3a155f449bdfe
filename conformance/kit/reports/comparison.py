"""Compares two reports of the same dialect: what got better, what got worse, and what only one of them asked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.kit.documents import DocumentError
from conformance.kit.reports import jsonfile
from conformance.kit.requirement import Level
from conformance.kit.verdict import Outcome, Report, Verdict

LEVELS = tuple(level.value for level in Level)


@dataclass(frozen=True)
class Judgement:
    """What a report says of one requirement."""

    id: str
    level: str
    outcome: str
    sentence: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Summary:
    """What a comparison needs to know of a report."""

    dialect: str
    url: str
    requirement_set: str | None
    verdict: str
    judgements: Mapping[str, Judgement]


@dataclass(frozen=True)
class Change:
    """One requirement in both reports; what only one report asked has the other side empty."""

    old: Judgement | None
    new: Judgement | None

    @property
    def latest(self) -> Judgement:
        judgement = self.new or self.old
        assert judgement is not None
        return judgement

    @property
    def is_worse(self) -> bool:
        """It fails and did not, or it passed and can no longer be tested; False if only one report asked for it."""
        if self.old is None or not self._has_another_outcome:
            return False
        gaps = (Outcome.NOT_TESTABLE, Outcome.NOT_OFFERED)
        was_lost = self.old.outcome == Outcome.PASSED and self.latest.outcome in gaps
        return was_lost or self.latest.outcome == Outcome.FAILED

    @property
    def is_better(self) -> bool:
        return self._has_another_outcome and self.latest.outcome == Outcome.PASSED

    @property
    def is_neither(self) -> bool:
        """The outcome changed, but says nothing new of the server, such as a failure that can no longer be tested."""
        return self._has_another_outcome and not self.is_worse and not self.is_better

    @property
    def has_another_level(self) -> bool:
        return self.old is not None and self.new is not None and self.old.level != self.new.level

    @property
    def _has_another_outcome(self) -> bool:
        return self.old is not None and self.new is not None and self.old.outcome != self.new.outcome


GROUPS: Mapping[str, Callable[[Change], bool]] = {
    "worse": lambda change: change.is_worse,
    "better": lambda change: change.is_better,
    "neither better nor worse": lambda change: change.is_neither,
    "another level": lambda change: change.has_another_level,
    "new": lambda change: change.old is None,
    "gone": lambda change: change.new is None,
}


@dataclass(frozen=True)
class Comparison:
    """What lies between two reports."""

    old: Summary
    new: Summary
    changes: Sequence[Change]
    """The requirements of both, the MUSTs first."""

    @property
    def has_worse(self) -> bool:
        return any(change.is_worse for change in self.changes)

    def of(self, group: str) -> list[Change]:
        return [change for change in self.changes if GROUPS[group](change)]

    def lines(self) -> Iterator[str]:
        """The comparison in words."""
        yield from self._differences()
        for group in GROUPS:
            if members := self.of(group):
                yield f"{group}: {len(members)}"
                for change in members:
                    yield from _told(change)
        if not any(self.of(group) for group in GROUPS):
            yield "nothing changed"
        if self.old.verdict != self.new.verdict and self.new.verdict != Verdict.CONFORMS and not self.has_worse:
            yield "no requirement that both reports asked got worse: the verdict is another for what was asked"
        yield self._verdicts()

    def _differences(self) -> Iterator[str]:
        """Other differences, which the server has not caused."""
        if self.old.url != self.new.url:
            yield f"two servers: {self.old.url}, then {self.new.url}"
        if self.old.requirement_set != self.new.requirement_set:
            sets = (self.old.requirement_set or "unreleased", self.new.requirement_set or "unreleased")
            yield "two sets of requirements: {}, then {}".format(*sets)

    def _verdicts(self) -> str:
        same = self.old.verdict == self.new.verdict
        verdict = f"still {self.new.verdict}" if same else f"{self.old.verdict}, then {self.new.verdict}"
        counts = ", ".join(f"{len(self.of(group))} {group}" for group in ("worse", "better", "new", "gone"))
        return f"verdict: {verdict} ({counts})"


def compare(old: Summary, new: Summary) -> Comparison:
    """What lies between two reports of the same dialect."""
    ids = sorted({*old.judgements, *new.judgements})
    changes = [Change(old.judgements.get(name), new.judgements.get(name)) for name in ids]
    return Comparison(old, new, sorted(changes, key=lambda change: LEVELS.index(change.latest.level)))


def summary(report: Report) -> Summary:
    """The summary of a report that was just made."""
    return _summary(jsonfile.body(report))


def compare_files(old: Path, new: Path, dialect: str | None = None) -> Comparison:
    """Compare two JSON reports; DocumentError if one is no report, or if they are of different dialects."""
    first, second = _summary(jsonfile.read(old)), _summary(jsonfile.read(new))
    wanted = dialect or first.dialect
    for path, found in ((old, first), (new, second)):
        if found.dialect != wanted:
            raise DocumentError(path, [f"is a report of {found.dialect}, not of {wanted}"])
    return compare(first, second)


def _summary(body: Mapping[str, Any]) -> Summary:
    return Summary(
        dialect=body["dialect"],
        url=body["url"],
        requirement_set=body["requirementSet"],
        verdict=body["verdict"],
        judgements={item["id"]: _judgement(item) for item in body["requirements"]},
    )


def _judgement(item: Mapping[str, Any]) -> Judgement:
    return Judgement(item["id"], item["level"], item["outcome"], item["sentence"], tuple(item["remarks"]))


def _told(change: Change) -> Iterator[str]:
    latest = change.latest
    yield f"  {latest.id} ({_both(change, 'level')}): {_both(change, 'outcome')}"
    yield f"    {latest.sentence}"
    if not change.is_better and change.new is not None:
        yield from (f"    {words}" for words, *_ in map(str.splitlines, filter(None, latest.remarks)))


def _both(change: Change, member: str) -> str:
    """A member of the requirement: its value, or the old and the new value if they differ."""
    sides = [getattr(side, member) for side in (change.old, change.new) if side is not None]
    return ", then ".join(dict.fromkeys(sides))
