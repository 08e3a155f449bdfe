"""Which features a dialect, or a pair of dialects, cannot express: read from the `support:` sections of the tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gateway.model as m
from gateway.backends import FeatureSupport, kind_of
from gateway.backends.remote import find_dialect
from gateway.composition import load_components
from gateway.config import AgentSettings, Config
from mappings.language import (
    FEATURES,
    LEVEL_MEANINGS,
    LEVEL_SYMBOLS,
    Table,
    Vocabulary,
    builtin_path,
    load_table,
    losses_between,
)

DEGRADED, UNKNOWN = "~", "?"


@dataclass(frozen=True)
class SupportGrid:
    """Marks; the first row is the header, a number refers to a note."""

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


def agent_grid(config: Config) -> SupportGrid:
    """Which agents get what a session has beside its conversation: one row per agent."""
    parts = load_components(config)
    rows, notes = [["what agents get", *m.SESSION_FEATURES]], list[str]()
    for name in parts.cards:
        row = [f"agent {name}"]
        for feature in m.SESSION_FEATURES:
            found = _agent_support(config.agents[name], config, parts.tables, feature)
            mark = LEVEL_SYMBOLS[found.level] if found else UNKNOWN
            if found and mark == DEGRADED:
                notes.append(f"agent {name} {feature}: {found.note or LEVEL_MEANINGS[found.level]}")
                mark += str(len(notes))
            row.append(mark)
        rows.append(row)
    return SupportGrid(rows, notes)


def _agent_support(
    agent: AgentSettings, config: Config, tables: Mapping[str, Table], feature: str,
) -> FeatureSupport | None:
    """How well an agent gets something of its sessions; a server elsewhere, as its dialect carries it."""
    kind = kind_of(agent.backend, config.file.parent if config.file else Path())
    if kind.support is not None:
        return kind.support[feature]
    dialect = agent.settings.get("dialect")
    if not isinstance(dialect, str):
        return None
    table = tables.get(dialect) or load_table(builtin_path(dialect), Vocabulary.of(find_dialect(dialect)))
    return FeatureSupport(table.client_support[feature], table.notes.get(feature) or "")


def pair_losses(config: Config) -> list[list[str]]:
    """Return what is lost between an agent behind one dialect and a client of another; the first row is the header."""
    tables = load_components(config).tables
    return [["agent", "client", "lost", "degraded"], *(
        [source, target, *(", ".join(names) or "nothing" for names in losses_between(tables[source], tables[target]))]
        for source in tables for target in tables
    )]
