"""The rows of the report, with an aim beside each ratio, as an aligned table or as JSON."""

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from .measure import Figure

LIBRARIES = ("aiohttp", "uvloop", "orjson", "msgspec")


@dataclass(frozen=True)
class Aim:
    """A limit for a figure: the ratio, or the figure of the column `of`."""

    bound: float
    at_least: bool
    text: str
    of: str = "ratio"

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound


def at_least(bound: float, text: str, of: str = "ratio") -> Aim:
    return Aim(bound, True, f"≥ {text}", of)


def at_most(bound: float, text: str, of: str = "ratio") -> Aim:
    return Aim(bound, False, f"≤ {text}", of)


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure for each column that has one."""

    scenario: str
    name: str
    unit: str
    figures: Mapping[str, Figure]
    ratio: Figure | None = None
    aim: Aim | None = None
    notes: Sequence[str] = field(default=())

    @property
    def judged(self) -> Figure | None:
        """The value that the aim is for; None if there is none."""
        if self.aim is None:
            return None
        return self.ratio if self.aim.of == "ratio" else self.figures[self.aim.of]

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None if there is none."""
        return None if self.aim is None or self.judged is None else self.aim.is_met(self.judged.median)


def number(value: float) -> str:
    """Three significant digits, with separators for thousands."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def within(value: Figure) -> str:
    """The median, and half of the range of the samples in percent of it."""
    if value.samples == 1 or not value.median:
        return number(value.median)
    return f"{number(value.median)} ±{50 * (value.high - value.low) / value.median:.0f}%"


def between(value: Figure) -> str:
    """The median, and the lowest and the highest sample."""
    if value.samples == 1:
        return number(value.median)
    return f"{number(value.median)} ({number(value.low)}–{number(value.high)})"


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Aligned for a fixed-width font: names to the left, figures to the right."""
    head = ["", "unit", *columns, "ratio", "aim", ""]
    lines, scenario = [head], ""
    for row in rows:
        if row.scenario != scenario:
            scenario = row.scenario
            lines.append([scenario.upper(), *[""] * (len(head) - 1)])
        lines.append(_cells(row, columns))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_line(cells, widths).rstrip() for cells in lines)


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    figures = [within(row.figures[name]) if name in row.figures else "–" for name in columns]
    ratio = between(row.ratio) if row.ratio else "–"
    return [f"  {row.name}", row.unit, *figures, ratio, row.aim.text if row.aim else "", _verdict(row.met)]


def _verdict(met: bool | None) -> str:
    return "" if met is None else "✓" if met else "✗"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if place < 2 or place >= len(cells) - 2 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded)


def notes(rows: Sequence[Row]) -> list[str]:
    return [f"{row.scenario}, {row.name}: {note}" for row in rows for note in row.notes]


def missed(rows: Sequence[Row]) -> list[str]:
    """The aims that were not met, as text."""
    return [f"{row.scenario}, {row.name}: {number(judged.median)}, wanted {row.aim.text}"
            for row in rows if row.met is False and row.aim is not None and (judged := row.judged) is not None]


def tables(rows: Sequence[Row], columns: Sequence[str], of: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One table, and another one for each scenario that has columns of its own."""
    if shared := [row for row in rows if row.scenario not in of]:
        yield table(shared, columns)
    for scenario, its in of.items():
        if apart := [row for row in rows if row.scenario == scenario]:
            yield table(apart, [name for name in its if any(name in row.figures for row in apart)])


def as_json(rows: Sequence[Row], effort: str) -> dict[str, Any]:
    return {"machine": machine(), "effort": effort, "rows": [{**asdict(row), "met": row.met} for row in rows]}


def machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)), "system": platform.platform(), "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }
