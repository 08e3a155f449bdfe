"""The only place where everything meets: settings → agents, log, engine and dialects → one aiohttp application."""

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
"""What is said of a degraded feature of which the table says no more."""


@dataclass(frozen=True)
class SupportGrid:
    """What each dialect tells its clients of each feature; the first row is the head, a number stands for a note."""

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
    """What is lost between an agent behind one dialect and a client of another; the first row is the head."""
    tables = load_components(config).tables
    return [["agent", "client", "lost", "degraded"], *(
        [source, target, *(", ".join(names) or "nothing" for names in losses_between(tables[source], tables[target]))]
        for source in tables for target in tables
    )]


def losses_between(first: Table, second: Table) -> tuple[list[str], list[str]]:
    """Features that the second's clients do not get of a server of the first, and those they get in a lesser form."""
    levels = {name: {first.client_support[name], second.support[name]} for name in FEATURES}
    lost = [name for name, both in levels.items() if LOST_LEVELS & both]
    return lost, [name for name, both in levels.items() if name not in lost and both != {SupportLevel.FULL}]
