"""Attribution: whether the requirements that fail are those that a flaw breaks.

A flaw is one thing wrong with a correct server: a fault of faults.yaml, whose row names the requirements whose
sentences it breaks, or a mutant of the kill matrix, for which schemas and orders tell them where they can. The whole
suite is put to that server. *Spread* is how many requirements fail for a flaw; *precision* is the share of all failed
requirements that the flaws break. What is not testable because another requirement failed has not failed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

import conformance.faults
from conformance.kit.documents import read_document
from conformance.kit.verdict import Outcome, Report

FAULTS, MUTANTS = "faults", "mutants"
WIDEST = 10
SHOWN = 3
"""How many broken requirements of a flaw are printed."""
LONGEST = 240
BOUNDS = Path(conformance.faults.__file__).parent / "attribution.yaml"


@dataclass(frozen=True)
class FlawEffect:
    """What fails on a server with one flaw."""

    flaw: str
    named: frozenset[str]
    """The requirements whose sentences the flaw breaks; empty if nobody has said which."""
    reasons: Mapping[str, str]
    """The requirements that fail, each with the case and its words."""
    blocked: int = 0
    """How many requirements are not testable because others failed."""

    @property
    def failed(self) -> frozenset[str]:
        return frozenset(self.reasons)

    @property
    def spread(self) -> int:
        return len(self.reasons)

    def as_json(self) -> dict[str, Any]:
        lists = {"named": sorted(self.named), "failed": sorted(self.failed)}
        return {"flaw": self.flaw, "spread": self.spread, "blocked": self.blocked, **lists}


def effect_in(report: Report, flaw: str, named: Iterable[str]) -> FlawEffect:
    """The effect of a flaw, as a report on the whole suite has it."""
    reasons = {}
    for finding in report.of(Outcome.FAILED):
        result = next(item for item in finding.grave if item.outcome is Outcome.FAILED)
        reasons[finding.requirement.id] = f"{result.name}: {result.remark}"
    return FlawEffect(flaw, frozenset(named), reasons, len(report.blocked))


@dataclass(frozen=True)
class Attribution:
    """The effects of the faults or the mutants of one dialect, and their figures."""

    dialect: str
    effects: tuple[FlawEffect, ...]
    kind: str = FAULTS

    @property
    def median(self) -> float:
        return float(median(self._spreads))

    @property
    def p90(self) -> int:
        """Nine flaws of ten make no more requirements fail than this."""
        return self._spreads[ceil(0.9 * len(self._spreads)) - 1]

    @property
    def most(self) -> int:
        return self._spreads[-1]

    @property
    def precision(self) -> float | None:
        """Of all requirements that fail, the share of those whose sentences are broken; None if nobody says which."""
        told = [effect for effect in self.effects if effect.named]
        failed = sum(effect.spread for effect in told)
        return sum(len(effect.failed & effect.named) for effect in told) / max(1, failed) if told else None

    @property
    def widest(self) -> list[FlawEffect]:
        """The flaws that make most requirements fail, the widest first."""
        return sorted(self.effects, key=lambda effect: (-effect.spread, effect.flaw))[:WIDEST]

    @property
    def _spreads(self) -> list[int]:
        return sorted(effect.spread for effect in self.effects) or [0]

    def as_json(self) -> dict[str, Any]:
        precision = None if self.precision is None else round(self.precision, 4)
        figures = {"median": self.median, "p90": self.p90, "max": self.most, "precision": precision}
        effects = [effect.as_json() for effect in sorted(self.effects, key=lambda effect: effect.flaw)]
        return {"dialect": self.dialect, "kind": self.kind, **figures, "flaws": effects}


# -- bounds ------------------------------------------------------------------------------------------------------------


class Bound(BaseModel):
    """What the figures of a dialect are held to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    median: float = 1
    p90: int = 2
    max: int = 5
    precision: float = 0.9

    def complaints(self, found: Attribution) -> list[str]:
        """Where the figures are worse than the bound."""
        figures = {"median": (found.median, self.median), "p90": (found.p90, self.p90), "max": (found.most, self.max)}
        told = [f"{name} {seen:g}, not {most:g}" for name, (seen, most) in figures.items() if seen > most]
        if found.precision is not None and found.precision < self.precision:
            told.append(f"precision {found.precision:.2f}, not {self.precision:.2f}")
        return [f"{found.dialect}: {found.kind}: {words}" for words in told]


class Bounds(BaseModel):
    """The bounds of the dialects, for each kind of flaw; what is not written is held to the aim."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bounds: dict[str, dict[str, Bound]] = {}

    def complaints(self, found: Iterable[Attribution]) -> list[str]:
        """Where figures are worse than their bounds."""
        return [words for item in found for words in self._bound(item).complaints(item)]

    def _bound(self, found: Attribution) -> Bound:
        return self.bounds.get(found.dialect, {}).get(found.kind, Bound())


def read_bounds(path: Path = BOUNDS) -> Bounds:
    """The bounds that are in force."""
    return read_document(path, Bounds)


# -- printing ----------------------------------------------------------------------------------------------------------

HEAD = ("dialect", "flaws", "number", "median", "p90", "max", "precision")


def row(found: Attribution) -> tuple[str, ...]:
    """The figures of a dialect, in the order of HEAD."""
    spreads = (f"{found.median:g}", str(found.p90), str(found.most))
    precision = "?" if found.precision is None else f"{found.precision:.2f}"
    return (found.dialect, found.kind, str(len(found.effects)), *spreads, precision)


def lines(attributions: Sequence[Attribution], *, is_detailed: bool = False) -> list[str]:
    """The table of figures as lines of text, and for each dialect its widest flaws, or all of them with reasons."""
    rows = [HEAD, *map(row, attributions)]
    widths = [max(len(line[place]) for line in rows) for place in range(len(HEAD))]
    printed = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in rows]
    for found in attributions:
        heading = f"{found.dialect}: failed requirements of the widest {found.kind} (*: the flaw does not break it)"
        printed += ["", heading]
        for effect in sorted(found.effects, key=lambda effect: effect.flaw) if is_detailed else found.widest:
            printed += _told(effect, is_detailed=is_detailed)
    return printed


def _told(effect: FlawEffect, *, is_detailed: bool) -> list[str]:
    breaks = f" (breaks {_some(sorted(effect.named))})" if effect.named else ""
    blocked = f", {effect.blocked} blocked" if effect.blocked else ""
    heading = f"{effect.spread:5}  {effect.flaw}{breaks}{blocked}"
    wrongly = effect.failed - effect.named if effect.named else frozenset()
    names = [f"{name}*" if name in wrongly else name for name in sorted(effect.failed)]
    if not is_detailed:
        return [heading, f"       {', '.join(names)}"] if names else [heading]
    reasons = [f"       {name}: {_cut(effect.reasons[name.rstrip('*')])}" for name in names]
    return [heading, *reasons]


def _cut(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= SHOWN else f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"


def write(folder: Path, attributions: Iterable[Attribution]) -> None:
    """Write attribution-<dialect>-<kind>.json for each."""
    folder.mkdir(parents=True, exist_ok=True)
    for found in attributions:
        path = folder / f"attribution-{found.dialect}-{found.kind}.json"
        path.write_bytes(orjson.dumps(found.as_json(), option=orjson.OPT_INDENT_2))
