"""Attribution: whether the requirements that fail are those that a fault breaks.

Each fault is a correct server with exactly one flaw, and its row in faults.yaml names the requirements whose sentences
the flaw breaks. The whole suite is put to that server. *Spread* is how many requirements fail for a fault; *precision*
is the share of all failed requirements that the rows name.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from conformance.faults.fault import Fault
from conformance.faults.kill.setups import KEY, setup_of
from conformance.faults.serving import served
from conformance.kit.runner import AT_ONCE, Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome

WIDEST = 10
SHOWN = 3
"""How many requirements of a fault are printed."""


@dataclass(frozen=True)
class FaultEffect:
    """What fails on a server with one fault."""

    fault: str
    named: frozenset[str]
    """The requirements whose sentences the fault breaks."""
    failed: frozenset[str]

    @property
    def spread(self) -> int:
        return len(self.failed)

    def as_json(self) -> dict[str, Any]:
        lists = {"named": sorted(self.named), "failed": sorted(self.failed)}
        return {"fault": self.fault, "spread": self.spread, **lists}


@dataclass(frozen=True)
class Attribution:
    """The effects of the faults of one dialect, and their figures."""

    dialect: str
    effects: tuple[FaultEffect, ...]

    @property
    def median(self) -> float:
        return float(median(self._spreads))

    @property
    def p90(self) -> int:
        """Nine faults of ten make no more requirements fail than this."""
        return self._spreads[ceil(0.9 * len(self._spreads)) - 1]

    @property
    def most(self) -> int:
        return self._spreads[-1]

    @property
    def precision(self) -> float:
        """Of all requirements that fail, the share of those whose sentences are broken."""
        rightly = sum(len(effect.failed & effect.named) for effect in self.effects)
        return rightly / max(1, sum(self._spreads))

    @property
    def widest(self) -> list[FaultEffect]:
        """The faults that make most requirements fail, the widest first."""
        return sorted(self.effects, key=lambda effect: (-effect.spread, effect.fault))[:WIDEST]

    @property
    def _spreads(self) -> list[int]:
        return sorted(effect.spread for effect in self.effects) or [0]

    def as_json(self) -> dict[str, Any]:
        figures = {"median": self.median, "p90": self.p90, "max": self.most, "precision": round(self.precision, 4)}
        effects = [effect.as_json() for effect in sorted(self.effects, key=lambda effect: effect.fault)]
        return {"dialect": self.dialect, **figures, "faults": effects}


def chosen(faults: Iterable[str], sample: int | None) -> list[str]:
    """All faults, or a sample that is always the same; a larger sample has all of a smaller one."""
    ordered = sorted(faults, key=lambda name: hashlib.sha256(name.encode()).digest())
    return ordered if sample is None else ordered[:sample]


async def effect_of(dialect: str, fault: Fault, within: float, at_once: int = AT_ONCE) -> FaultEffect:
    """Put the whole suite to the server with this fault."""
    setup, suite = setup_of(dialect), load_suite(dialect)
    server = setup.wrong(fault)
    async with served(server) as url:
        target = Target(url, KEY, within, allow_destructive=True, is_disposable=True)
        runner = Runner(suite, target, setup.profile(suite, server), at_once)
        report = await runner.run(suite.catalogue.requirements)
    failed = frozenset(finding.requirement.id for finding in report.of(Outcome.FAILED))
    return FaultEffect(fault.name, frozenset(fault.requirements), failed)


async def attribute(
    dialect: str, sample: int | None, within: float, faults_at_once: int, advance: Callable[[str, int, int], None]
) -> Attribution:
    """Put the whole suite to every fault of a dialect, or to those of a sample."""
    faults = setup_of(dialect).faults
    names = chosen(faults, sample)
    places = asyncio.Semaphore(faults_at_once)
    advance(dialect, 0, len(names))

    async def one(name: str) -> FaultEffect:
        async with places:
            effect = await effect_of(dialect, faults[name], within)
        advance(dialect, 1, 0)
        return effect

    return Attribution(dialect, tuple(await asyncio.gather(*map(one, names))))


# -- printing ----------------------------------------------------------------------------------------------------------

HEAD = ("dialect", "faults", "median", "p90", "max", "precision")


def row(attribution: Attribution) -> tuple[str, ...]:
    """The figures of a dialect, in the order of HEAD."""
    spreads = (f"{attribution.median:g}", str(attribution.p90), str(attribution.most))
    return (attribution.dialect, str(len(attribution.effects)), *spreads, f"{attribution.precision:.2f}")


def lines(attributions: Sequence[Attribution]) -> list[str]:
    """The table of figures as lines of text, and for each dialect its widest faults."""
    rows = [HEAD, *map(row, attributions)]
    widths = [max(len(line[place]) for line in rows) for place in range(len(HEAD))]
    printed = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in rows]
    for attribution in attributions:
        printed += ["", f"{attribution.dialect}: failed requirements of the widest faults"]
        for effect in attribution.widest:
            printed.append(f"{effect.spread:5}  {effect.fault} (breaks {_some(sorted(effect.named))})")
    return printed


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= SHOWN else f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"


def write(folder: Path, attributions: Iterable[Attribution]) -> None:
    """Write attribution-<dialect>.json for each dialect."""
    folder.mkdir(parents=True, exist_ok=True)
    for attribution in attributions:
        path = folder / f"attribution-{attribution.dialect}.json"
        path.write_bytes(orjson.dumps(attribution.as_json(), option=orjson.OPT_INDENT_2))
