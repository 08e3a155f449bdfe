"""From settings to parts: dialects imported, tables loaded, agents made; every problem of all of them at once."""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from adapters import known_dialects
from gateway import backends
from gateway.config import AgentSettings, Config, merge_card
from gateway.errors import GatewayError
from gateway.marks import Marked, Path_, Problem, Problems, nearest, read
from gateway.model import AgentCard
from gateway.ports import Backend, Dialect
from mappings.language import Table, Vocabulary, builtin_path, load_table


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the settings name, loaded: everything that can be exchanged while the server runs."""

    config: Config
    dialects: Mapping[str, Dialect]
    settings: Mapping[str, Any]
    tables: Mapping[str, Table]
    cards: Mapping[str, AgentCard]
    backends: Mapping[str, Backend]


def load_parts(config: Config, old: Parts | None = None) -> Parts:
    """Raises `Problems`. Agents whose settings are as they were in `old` are kept."""
    document = read(config.shown) if config.shown else Marked("the settings")
    problems: list[Problem] = []
    dialects = dict(_dialects(config, document, problems))
    settings = {name: _own_settings(config, dialect, document, problems) for name, dialect in dialects.items()}
    tables = {name: _table(config, dialect, problems) for name, dialect in dialects.items()}
    agents = {name: _agent(name, agent, config, old, document, problems) for name, agent in config.agents.items()}
    if problems:
        raise Problems(problems)
    return Parts(
        config=config, dialects=dialects, settings=settings,
        tables={name: table for name, table in tables.items() if table},
        cards={name: made[0] for name, made in agents.items() if made},
        backends={name: made[1] for name, made in agents.items() if made},
    )


def _dialects(config: Config, document: Marked, problems: list[Problem]) -> Iterator[tuple[str, Dialect]]:
    for name in config.dialects:
        if name in known_dialects():
            yield name, importlib.import_module(f"adapters.{name}").DIALECT
        else:
            hint = nearest(name, known_dialects()) or f"there are: {', '.join(known_dialects())}"
            place = document.place(("dialects", name), key=True)
            problems.append(Problem(place, f"there is no dialect '{name}'", hint))


def _own_settings(config: Config, dialect: Dialect, document: Marked, problems: list[Problem]) -> Any:
    given, shape = config.dialects[dialect.name].settings, dialect.settings or NoSettings
    at = ("dialects", dialect.name)
    return _shaped(lambda: shape.model_validate(given), ("mount", *shape.model_fields), at, document, problems)


class NoSettings(BaseModel, extra="forbid"):
    """A dialect without settings of its own."""


def _shaped(make: Callable[[], Any], known: Iterable[str], at: Path_, document: Marked, problems: list[Problem]) -> Any:
    """What `make` makes, or its mistakes at their places."""
    try:
        return make()
    except ValidationError as error:
        for found in error.errors(include_url=False):
            extra = found["type"] == "extra_forbidden"
            word = ".".join(str(step) for step in found["loc"])
            problems.append(Problem(
                document.place((*at, *found["loc"]), key=extra),
                f"there is no setting '{word}'" if extra else f"{word}: {found['msg']}",
                nearest(word, known) if extra else "",
            ))
        return None


def _table(config: Config, dialect: Dialect, problems: list[Problem]) -> Table | None:
    vocabulary = Vocabulary(
        cues=dialect.cues, names=dialect.names, messages=dialect.messages, objects=dialect.objects,
    )
    override = config.mappings.get(dialect.name)
    try:
        table = load_table(builtin_path(dialect.name), vocabulary, [override] if override else [])
        for framing in dialect.framings:
            table.speaker(framing)
        return table
    except Problems as found:
        problems += found.problems
        return None


def _agent(
    name: str, agent: AgentSettings, config: Config, old: Parts | None, document: Marked, problems: list[Problem],
) -> tuple[AgentCard, Backend] | None:
    base, at = config.file.parent if config.file else Path(), ("agents", name)
    try:
        kind = backends.kind_of(agent.backend, base)
        kept = old.backends.get(name) if old and old.config.agents.get(name) == agent else None
        made = kept or _shaped(
            lambda: kind.make(agent.settings, base), kind.settings.model_fields if kind.settings else (),
            (*at, "settings"), document, problems,
        )
    except GatewayError as error:
        hint = nearest(agent.backend, backends.KINDS) or f"there are {', '.join(backends.KINDS)}, and module:Class"
        problems.append(Problem(document.place((*at, "backend")), error.message, hint))
        return None
    except Problems as found:
        problems += found.problems
        return None
    return (merge_card(kind.card, name, agent), made) if made else None


def problems_of(config: Config) -> list[Problem]:
    """Every mistake in what the settings name."""
    try:
        load_parts(config)
    except Problems as found:
        return found.problems
    return []
