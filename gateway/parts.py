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
from gateway.field_errors import YAML, described
from gateway.marks import Marked, Path_, Problem, Problems, nearest, read
from gateway.model import AgentCard
from gateway.ports import Backend, Confined, Dialect
from gateway.shadow import Reporter, ShadowBackend
from gateway.upstream import AddressPolicy
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
    _shadowed(agents, config, old, document, problems)
    problems += _same_mounts(config, dialects.values(), document)
    problems += _strange_agents(config, dialects.values(), document)
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


def _same_mounts(config: Config, dialects: Iterable[Dialect], document: Marked) -> Iterator[Problem]:
    """A dialect that is moved to where another is by itself; two that are moved are found without knowing them."""
    usual = {dialect.mount: dialect.name for dialect in dialects if config.dialects[dialect.name].mount is None}
    for name, given in config.dialects.items():
        if given.mount in usual:
            yield Problem(document.place(("dialects", name, "mount")),
                          f"'{given.mount}' is where '{usual[given.mount]}' is mounted already")


def _strange_agents(config: Config, dialects: Iterable[Dialect], document: Marked) -> Iterator[Problem]:
    """A dialect may have a setting that names its agent."""
    for dialect in dialects:
        agent = config.dialects[dialect.name].settings.get("agent")
        is_known = dialect.settings is not None and "agent" in dialect.settings.model_fields
        if is_known and isinstance(agent, str) and agent not in (agents := _named_agents(config, document)):
            hint = nearest(agent, agents) or f"there are: {', '.join(agents)}"
            yield Problem(document.place(("dialects", dialect.name, "agent")), f"there is no agent '{agent}'", hint)


def _named_agents(config: Config, document: Marked) -> list[str]:
    """Those of the settings, and those of the file that are left out of the settings because they are wrong."""
    written = document.value.get("agents") if isinstance(document.value, dict) else None
    return list(dict.fromkeys([*config.agents, *map(str, written if isinstance(written, dict) else ())]))


class NoSettings(BaseModel, extra="forbid"):
    """A dialect without settings of its own."""


def _shaped(make: Callable[[], Any], known: Iterable[str], at: Path_, document: Marked, problems: list[Problem]) -> Any:
    """What `make` makes, or its mistakes at their places."""
    try:
        return make()
    except ValidationError as error:
        for found in error.errors(include_url=False):
            extra, missing = found["type"] == "extra_forbidden", found["type"] == "missing"
            word = ".".join(str(step) for step in found["loc"])
            problems.append(Problem(
                document.place((*at, *found["loc"]), key=extra),
                f"there is no setting '{word}'" if extra else f"'{word}' is missing" if missing
                else str(described(found, word, YAML, discreet=True)),
                nearest(word, known) if extra else "",
            ))
        return None


def _table(config: Config, dialect: Dialect, problems: list[Problem]) -> Table | None:
    override = config.mappings.get(dialect.name)
    try:
        table = load_table(builtin_path(dialect.name), Vocabulary.of(dialect), [override] if override else [])
        for framing in dialect.framings:
            table.speaker(framing)
        return table
    except Problems as found:
        problems += found.problems
        return None


def _agent(
    name: str, agent: AgentSettings, config: Config, old: Parts | None, document: Marked, problems: list[Problem],
) -> tuple[AgentCard, Backend] | None:
    found = _backend(agent.backend, agent.settings, config, ("agents", name), document, problems,
                     _kept(name, config, old))
    return (merge_card(found[0], name, agent), found[1]) if found else None


def _kept(name: str, config: Config, old: Parts | None) -> Backend | None:
    """The agent there is, if its settings and its code are as they were."""
    if old is None or old.config.agents.get(name) != config.agents[name]:
        return None
    if any(getattr(old.config, word) != getattr(config, word) for word in ("shadow", "outbound", "workspace")):
        return None
    backend = old.backends.get(name)
    return None if backends.is_stale(backend) else backend


def _backend(
    word: str, settings: Mapping[str, Any], config: Config, at: Path_, document: Marked, problems: list[Problem],
    kept: Backend | None = None,
) -> tuple[AgentCard, Backend] | None:
    base = config.file.parent if config.file else Path()
    try:
        kind = backends.kind_of(word, base)
        made = kept or _shaped(
            lambda: kind.make(settings, base), kind.settings.model_fields if kind.settings else (),
            (*at, "settings"), document, problems,
        )
    except GatewayError as error:
        hint = nearest(word, backends.known_kinds()) or (
            f"there are {', '.join(backends.known_kinds())}, and module:Class")
        problems.append(Problem(document.place((*at, "backend")), error.message, hint))
        return None
    except Problems as found:
        problems += found.problems
        return None
    if isinstance(made, Confined):
        made.confine(AddressPolicy(config.outbound.allow), trust_uploads=config.workspace.trust)
    return (getattr(made, "card", kind.card), made) if made else None


def _shadowed(
    agents: dict[str, tuple[AgentCard, Backend] | None], config: Config, old: Parts | None, document: Marked,
    problems: list[Problem],
) -> None:
    """Put each agent that is to have a shadow behind one of its own."""
    wanted = config.shadow
    if wanted is None:
        return
    known = _named_agents(config, document)
    for number, name in enumerate(wanted.agents or ()):
        if name not in known:
            problems.append(Problem(
                document.place(("shadow", "agents", number)), f"there is no agent '{name}'", nearest(name, known)))
    if not any(agents.values()):
        _backend(wanted.backend, wanted.settings, config, ("shadow",), document, problems)
    reporter = Reporter(config.data / wanted.report)
    for name, made in agents.items():
        if made is None or (wanted.agents is not None and name not in wanted.agents) or _kept(name, config, old):
            continue
        shadow = _backend(wanted.backend, wanted.settings, config, ("shadow",), document, problems)
        if shadow is None:
            return
        agents[name] = made[0], ShadowBackend(
            made[1], shadow[1], reporter, share=wanted.share, at_once=wanted.at_once, seconds=wanted.seconds,
        )


def problems_of(config: Config) -> list[Problem]:
    """Every mistake in what the settings name."""
    try:
        load_parts(config)
    except Problems as found:
        return found.problems
    return []
