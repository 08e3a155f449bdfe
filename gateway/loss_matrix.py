"""Which features a dialect, or a pair of dialects, cannot express: read from the `support:` sections of the tables."""

from dataclasses import dataclass

from gateway.composition import load_components
from gateway.config import Config
from mappings.language import FEATURES, SupportLevel, Table

LOST_LEVELS = frozenset((SupportLevel.DROPPED, SupportLevel.REJECTED))
DEGRADED = "~"
LEVEL_SYMBOLS = {
    SupportLevel.FULL: "✓",
    SupportLevel.PARTIAL: DEGRADED,
    SupportLevel.FALLBACK: DEGRADED,
    SupportLevel.DROPPED: "✗",
    SupportLevel.REJECTED: "✗",
}
LEVEL_MEANINGS = {SupportLevel.PARTIAL: "some of it arrives", SupportLevel.FALLBACK: "it arrives as something else"}
"""The note of a degraded feature whose table has no note."""


@dataclass(frozen=True)
class SupportGrid:
    """One row per feature, one column per dialect; the first row is the header, a number refers to a note."""

    rows: list[list[str]]
    notes: list[str]


def support_grid(config: Config) -> SupportGrid:
    tables = load_components(config).tables
    rows, notes = [["feature", *tables]], list[str]()
    for feature in FEATURES:
        row = [feature]
        for name, table in tables.items():
            mark = LEVEL_SYMBOLS[table.support[feature]]
            if mark == DEGRADED:
                notes.append(f"{name} {feature}: {table.notes.get(feature) or LEVEL_MEANINGS[table.support[feature]]}")
                mark += str(len(notes))
            row.append(mark)
        rows.append(row)
    return SupportGrid(rows, notes)


def pair_losses(config: Config) -> list[list[str]]:
    """Return what is lost between an agent behind one dialect and a client of another; the first row is the header."""
    tables = load_components(config).tables
    return [["agent", "client", "lost", "degraded"], *(
        [source, target, *(", ".join(names) or "nothing" for names in losses_between(tables[source], tables[target]))]
        for source in tables for target in tables
    )]


def losses_between(first: Table, second: Table) -> tuple[list[str], list[str]]:
    """Return the features that clients of the second dialect lose, and those they get in a degraded form."""
    levels = {name: {first.client_support[name], second.support[name]} for name in FEATURES}
    lost = [name for name, both in levels.items() if LOST_LEVELS & both]
    return lost, [name for name, both in levels.items() if name not in lost and both != {SupportLevel.FULL}]
