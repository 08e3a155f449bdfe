"""What grows: sessions, their length, lists, resources; each cost at three sizes, with its exponent."""

from collections.abc import Iterator

from bench.report import Row
from bench.scenarios.runner import Bench, Scenario

from .additions import measure_additions
from .costs import COLUMNS
from .memory_sizes import measure_memory_sizes
from .replays import measure_replays
from .session_lists import measure_lists
from .turns import measure_turns

GROWTH_PARTS: dict[str, Scenario] = {
    "growth.replays": measure_replays,
    "growth.lists": measure_lists,
    "growth.additions": measure_additions,
    "growth.turns": measure_turns,
    "growth.memory": measure_memory_sizes,
}


def measure_growth(bench: Bench) -> Iterator[Row]:
    """All parts."""
    for part in GROWTH_PARTS.values():
        yield from part(bench)


__all__ = ["COLUMNS", "GROWTH_PARTS", "measure_growth"]
