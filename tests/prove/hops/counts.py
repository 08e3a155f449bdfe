"""The counts of a turn, the table of all turns, its comparison with an earlier run, and the limits."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
import yaml

from tests.prove.hops.tracer import Trace, tracing
from tests.prove.hops.turns import Client, gateway_for
from tests.simulation import simulated
from tests.support.gateway_server import Served

GREETING = "Hello there"
PACED, BURST = 20, 200
"""Deltas of the shorter of two turns; the longer one has twice as many."""
REST = 11.0
"""Simulated seconds after which nothing of an earlier turn is still at work."""


@dataclass(frozen=True)
class Counts:
    """What one turn enters. A figure per delta is the difference of two turns, divided by the difference of deltas."""

    entered: int = field(metadata={"column": "entered"})
    functions: int = field(metadata={"column": "functions"})
    modules: int = field(metadata={"column": "modules"})
    per_delta: float = field(metadata={"column": "per delta"})
    per_delta_in_burst: float = field(metadata={"column": "in a burst"})
    nesting: int = field(metadata={"column": "nesting"})

    @classmethod
    def columns(cls) -> dict[str, str]:
        return {each.name: str(each.metadata["column"]) for each in fields(cls)}

    def figures(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Function:
    """A function of a turn: how often it is entered per request and per delta, and how deeply nested it is at first."""

    name: str
    per_request: int
    per_delta: float
    per_delta_in_burst: float
    nesting: int


@dataclass(frozen=True)
class Measured:
    """The counts of a turn, its functions in the order of their first entry, and the longest row of open ones."""

    counts: Counts
    functions: Sequence[Function]
    deepest: Sequence[str]


# -- measuring --------------------------------------------------------------------------------------------------------

def measure(turn: str) -> Measured:
    """Count one turn, in simulated time."""
    structlog.configure(processors=[_drop])
    with TemporaryDirectory(prefix="hops-") as folder:
        return simulated(_measure(turn, Path(folder)))


def _drop(*entry: object) -> dict[str, object]:
    raise structlog.DropEvent


async def _measure(turn: str, folder: Path) -> Measured:
    async with gateway_for(turn, folder) as (served, client):
        await _traced(served, client, GREETING)  # whatever is made only once is made now
        request, _ = await _traced(served, client, GREETING)
        paced = await _slope(served, client, "/slow", PACED, is_each_sent=True)
        burst = await _slope(served, client, "/burst", BURST)
    functions = [
        Function(name, request.entries[name], paced.of(name), burst.of(name), request.nesting.get(name, 0))
        for name in dict.fromkeys([*request.entries, *paced.more, *burst.more])
    ]
    deepest = request.deepest
    return Measured(Counts(
        request.entries.total(), len(request.entries), len(request.modules), paced.total, burst.total, len(deepest),
    ), functions, deepest)


@dataclass(frozen=True)
class Slope:
    """How much oftener functions are entered if there are so many deltas more."""

    more: Counter[str]
    deltas: int

    @property
    def total(self) -> float:
        return round(self.more.total() / self.deltas, 3)

    def of(self, name: str) -> float:
        return round(self.more[name] / self.deltas, 3)


async def _slope(
    served: Served, client: Client, directive: str, count: int, *, is_each_sent: bool = False,
) -> Slope:
    short, few = await _traced(served, client, f"{directive} {count}")
    long, many = await _traced(served, client, f"{directive} {2 * count}")
    assert not is_each_sent or many - few == count, f"{count} deltas more arrived as {many - few}"
    more = Counter(long.entries)
    more.subtract(short.entries)
    return Slope(Counter({name: number for name, number in more.items() if number}), count)


async def _traced(served: Served, client: Client, text: str) -> tuple[Trace, int]:
    """The second turn of a new session: the first one opens whatever a session needs once."""
    async with client(served) as say:
        await say(GREETING)
        await asyncio.sleep(REST)
        with tracing() as trace:
            deltas = await say(text)
        await asyncio.sleep(REST)
    return trace, deltas


# -- tables -----------------------------------------------------------------------------------------------------------

def table(found: Mapping[str, Counts], earlier: Mapping[str, Counts] | None = None) -> str:
    """A row per turn; with an earlier run each cell is `before → after (ratio)`."""
    head = ["turn", *Counts.columns().values()]
    return _aligned([head, *([turn, *_cells(counts, (earlier or {}).get(turn))] for turn, counts in found.items())])


def _cells(counts: Counts, earlier: Counts | None) -> Iterable[str]:
    for name, after in counts.figures().items():
        before = earlier.figures()[name] if earlier else None
        yield f"{after:g}" if before is None else f"{before:g} → {after:g} ({_ratio(before, after)})"


def _ratio(before: float, after: float) -> str:
    return f"{after / before:.2f}" if before else "new"


def functions_table(measured: Measured) -> str:
    """Every function of a turn in the order of its first entry, indented as deeply as it was nested then."""
    rows = [["per request", "per delta", "in a burst", "function"]]
    rows += [[f"{one.per_request}", f"{one.per_delta:g}", f"{one.per_delta_in_burst:g}", ". " * one.nesting + one.name]
             for one in measured.functions]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    lines = ["  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
             for row in rows]
    return "\n".join([*lines, "", f"the deepest nesting, {len(measured.deepest)} functions:",
                      *(f"  {name}" for name in measured.deepest)])


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join("  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in
                                                         zip(row[1:], widths[1:], strict=True))]) for row in rows)


# -- limits -----------------------------------------------------------------------------------------------------------

MARGIN = {"per_delta_in_burst": 1.01}
"""How many deltas of a burst are read at once varies a little with the version of Python."""
HEAD = """\
# What a turn may enter at most; the columns are those of the table that `make prove ARGS="--only hops"` prints.
# If a change removes functions, lower the limits: make prove ARGS="--only hops -- --write-limits"
"""


def read_limits(file: Path) -> dict[str, dict[str, float]]:
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")))


def write_limits(found: Mapping[str, Counts], file: Path) -> None:
    """Write these counts as limits; the limits of other turns stay."""
    limits = read_limits(file) if file.is_file() else {}
    limits |= {turn: counts.figures() for turn, counts in found.items()}
    lines = [f"{turn}: {yaml.safe_dump(its, default_flow_style=True, sort_keys=False, width=1000)}"
             for turn, its in limits.items()]
    file.write_text(HEAD + "".join(lines), encoding="utf-8")


def violations(found: Mapping[str, Counts], limits: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One sentence for each figure that is above its limit, or has none."""
    told, columns = [], Counts.columns()
    for turn, counts in found.items():
        for name, figure in counts.figures().items():
            limit = limits.get(turn, {}).get(name)
            if limit is None:
                told.append(f"{turn}: {name} has no limit; it is {figure:g}")
            elif figure > limit * MARGIN.get(name, 1):
                told.append(f"{turn}: {columns[name]}: {figure:g}, but the limit is {limit:g}")
    return told


def below(found: Mapping[str, Counts], limits: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The turns that have a figure below its limit."""
    return [turn for turn, counts in found.items()
            if any(figure < limits.get(turn, {}).get(name, figure) for name, figure in counts.figures().items())]
