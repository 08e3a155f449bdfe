"""What a thing costs at three sizes: CPU time of the server, the exponent of its growth, and the aims."""

import time
from collections.abc import Callable, Mapping, Sequence
from math import log

from bench.measure import Figure, figure, paired_ratio
from bench.report import Row, at_most
from bench.servers import Server

NAME = "growth"
SMALL, MIDDLE, LARGE, EXPONENT = COLUMNS = ("small", "middle", "large", "exponent")
PLACES = (SMALL, MIDDLE, LARGE)
LINEAR = at_most(1.05, "1.05 (linear)", EXPONENT)
RESTING_SECONDS = 0.01
"""A server that takes less CPU time in half a second has nothing to do."""
Costs = Mapping[str, Sequence[float]]
"""Column → milliseconds, round by round."""


def flat(bound: float = 1.2) -> "Callable[[str, str, Costs], Row]":
    """Rows whose large cost may be so many times the small one."""
    aim = at_most(bound, f"{bound:g} × (flat)")

    def row(name: str, unit: str, costs: Costs) -> Row:
        ratio = paired_ratio(costs[LARGE], costs[SMALL])
        return Row(NAME, name, unit, {column: figure(costs[column]) for column in costs}, ratio, aim)

    return row


def linear_row(name: str, costs: Costs, sizes: Sequence[int]) -> Row:
    """A row whose cost may grow as its size does; the exponent is that of the two larger sizes."""
    figures = {column: figure(costs[column]) for column in costs}
    return Row(NAME, name, "ms CPU", {**figures, EXPONENT: exponent(costs, sizes)}, aim=LINEAR)


def exponent(costs: Costs, sizes: Sequence[int]) -> Figure:
    """By which power of the size the cost grows: 1 is linear, 0 is flat."""
    growth = log(sizes[-1] / sizes[-2])
    return figure([log(large / middle) / growth for middle, large in zip(costs[MIDDLE], costs[LARGE], strict=True)])


def sizes_of(sizes: Sequence[int]) -> str:
    return " / ".join(f"{size:,}" for size in sizes)


def cpu_ms(server: Server, work: Callable[[], object], times: int = 1) -> float:
    """The CPU time that the server takes for the work, in milliseconds; the work is done so many times."""
    before = server.spent()
    for _ in range(times):
        work()
    return 1000 * (server.spent() - before).cpu / times


def await_rest(server: Server) -> None:
    """Wait until the server has nothing to do, for a minute at most."""
    for _ in range(120):
        before = server.spent()
        time.sleep(0.5)
        if (server.spent() - before).cpu < RESTING_SECONDS:
            return
