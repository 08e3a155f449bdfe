"""Loads what the settings name: dialects, tables and agents; reports every problem at once; retires replaced agents."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

import gateway.model as m
from adapters import add_dialect_folders, known_dialects, load_dialect
from gateway.backends import BackendContext, MadeBackend, kinds
from gateway.backends.shadow import ShadowOptions, ShadowReport, shadowed
from gateway.client import AddressPolicy
from gateway.config import Config
from gateway.errors import GatewayError, NotFound
from gateway.field_errors import YAML_NOUNS, describe_error
from gateway.json_values import JsonValue
from gateway.ports import Backend, Dialect
from gateway.yaml_positions import NodePath, Problem, Problems, YamlDocument, read_yaml, suggest
from mappings.language import Table, Vocabulary, builtin_path, load_table

from .config import AgentSettings, CapabilitySettings, OptionSettings, ToolSettings

REMOTE = "remote"
"""The kind of agents that are servers of a dialect."""


def merge_card(default: m.AgentCard, name: str, agent: AgentSettings) -> m.AgentCard:
    """The card of the agent `name`: the card of its backend, with what the settings say in its place."""
    given = {word: value for word in ("title", "description", "version", "model") if (value := getattr(agent, word))}
    return replace(
        default,
        name=name,
        tools=default.tools if agent.tools is None else tuple(map(_card_tool, agent.tools)),
        options=default.options if agent.options is None else tuple(map(_card_option, agent.options)),
        capabilities=_card_capabilities(default.capabilities, agent.capabilities),
        **given,
    )


def _card_tool(tool: ToolSettings) -> m.AgentTool:
    spec = m.ToolSpec(name=tool.name, title=tool.title, description=tool.description, parameters=tool.parameters)
    return m.AgentTool(spec=spec, permission=tool.permission)


def _card_option(option: OptionSettings) -> m.AgentOption:
    return m.AgentOption(
        name=option.name, kind=option.type, default=option.default,
        title=option.title, description=option.description, choices=option.options,
    )


def _card_capabilities(default: m.AgentCapabilities, given: CapabilitySettings) -> m.AgentCapabilities:
    return replace(default, **given.model_dump(exclude_none=True))


@dataclass(frozen=True, kw_only=True)
class Components:
    """All that the settings name, loaded; a reload replaces it as a whole."""

    config: Config
    dialects: Mapping[str, Dialect]
    settings: Mapping[str, Any]
    tables: Mapping[str, Table]
    cards: Mapping[str, m.AgentCard]
    made: Mapping[str, MadeBackend]
    backends: Mapping[str, Backend]


def load_components(
    config: Config, old: Components | None = None, given: Mapping[str, MadeBackend] | None = None,
) -> Components:
    """Load all that the settings name; agents that are given, or whose settings have not changed, are kept.

    Raises `Problems`.
    """
    document = read_yaml(config.display_path) if config.display_path else YamlDocument("the settings")
    problems: list[Problem] = []
    add_dialect_folders(config.dialect_folders)
    dialects = dict(_dialects(config, document, problems))
    settings = {name: _dialect_settings(config, dialect, document, problems) for name, dialect in dialects.items()}
    tables = {name: _table(config, dialect, problems) for name, dialect in dialects.items()}
    agents = {
        name: _agent(
            name, agent, config, (given or {}).get(name) or _reusable_backend(name, config, old), document, problems)
        for name, agent in config.agents.items()
    }
    _add_shadows(agents, config, old, document, problems)
    problems += _same_mounts(config, dialects.values(), document)
    problems += _unknown_agents(config, dialects.values(), document)
    problems += _ownerless_adoptions(config, document)
    if problems:
        raise Problems(problems)
    return Components(
        config=config, dialects=dialects, settings=settings,
        tables={name: table for name, table in tables.items() if table},
        cards={name: agent[0] for name, agent in agents.items() if agent},
        made={name: agent[1] for name, agent in agents.items() if agent},
        backends={name: agent[1].backend for name, agent in agents.items() if agent},
    )


def find_dialect(name: str) -> Dialect:
    """The dialect of this name, wherever dialects are found; raises `NotFound`, with a suggestion."""
    if name in known_dialects():
        return load_dialect(name)
    hint = suggest(name, known_dialects()) or f"there are: {', '.join(known_dialects())}"
    raise NotFound(f"there is no dialect '{name}'; {hint}")


def load_dialect_table(config: Config, name: str) -> tuple[Dialect, Table]:
    """A dialect and its table, with the override of the settings; the settings need not serve it. Raises `Problems`."""
    problems: list[Problem] = []
    add_dialect_folders(config.dialect_folders)
    dialect = find_dialect(name)
    table = _table(config, dialect, problems)
    if table is None:
        raise Problems(problems)
    return dialect, table


def _dialects(config: Config, document: YamlDocument, problems: list[Problem]) -> Iterator[tuple[str, Dialect]]:
    for name in config.dialects:
        if name in known_dialects():
            yield name, load_dialect(name)
        else:
            hint = suggest(name, known_dialects()) or f"there are: {', '.join(known_dialects())}"
            place = document.position(("dialects", name), key=True)
            problems.append(Problem(place, f"there is no dialect '{name}'", hint))


def _dialect_settings(config: Config, dialect: Dialect, document: YamlDocument, problems: list[Problem]) -> Any:
    given, shape = config.dialects[dialect.name].settings, dialect.settings or NoDialectSettings
    at = ("dialects", dialect.name)
    return _made_or_reported(
        lambda: shape.model_validate(given), ("mount", *shape.model_fields), at, document, problems
    )


def _same_mounts(config: Config, dialects: Iterable[Dialect], document: YamlDocument) -> Iterator[Problem]:
    """A problem for each dialect that is mounted at the default mount of another one."""
    usual = {dialect.mount: dialect.name for dialect in dialects if config.dialects[dialect.name].mount is None}
    for name, given in config.dialects.items():
        if given.mount in usual:
            yield Problem(document.position(("dialects", name, "mount")),
                          f"'{given.mount}' is where '{usual[given.mount]}' is mounted already")


def _unknown_agents(config: Config, dialects: Iterable[Dialect], document: YamlDocument) -> Iterator[Problem]:
    """A dialect may have a setting that names its agent."""
    for dialect in dialects:
        agent = config.dialects[dialect.name].settings.get("agent")
        is_known = dialect.settings is not None and "agent" in dialect.settings.model_fields
        if is_known and isinstance(agent, str) and agent not in (agents := _named_agents(config, document)):
            hint = suggest(agent, agents) or f"there are: {', '.join(agents)}"
            yield Problem(document.position(("dialects", dialect.name, "agent")), f"there is no agent '{agent}'", hint)


def _ownerless_adoptions(config: Config, document: YamlDocument) -> Iterator[Problem]:
    """With keys, somebody must be named whose sessions those of another server become."""
    for name, agent in config.agents.items():
        if agent.backend == REMOTE and agent.settings.get("adopt") is True and config.auth_methods \
                and not agent.settings.get("adopt_for"):
            yield Problem(document.position(("agents", name, "settings", "adopt"), key=True),
                          "`adopt` needs `adopt_for` where clients need keys",
                          "name the user who gets the sessions of that server")


def _named_agents(config: Config, document: YamlDocument) -> list[str]:
    """The agents of the settings, and those of the file that were left out because they have mistakes."""
    written = document.value.get("agents") if isinstance(document.value, dict) else None
    return list(dict.fromkeys([*config.agents, *map(str, written if isinstance(written, dict) else ())]))


class NoDialectSettings(BaseModel, extra="forbid"):
    """A dialect without settings of its own."""


def _made_or_reported(
    make: Callable[[], object], known: Iterable[str], at: NodePath, document: YamlDocument, problems: list[Problem]
) -> Any:
    """What `make` returns; its validation errors become problems with their positions."""
    try:
        return make()
    except ValidationError as error:
        for found in error.errors(include_url=False):
            extra, missing = found["type"] == "extra_forbidden", found["type"] == "missing"
            word = ".".join(str(step) for step in found["loc"])
            problems.append(Problem(
                document.position((*at, *found["loc"]), key=extra),
                f"there is no setting '{word}'" if extra else f"'{word}' is missing" if missing
                else str(describe_error(found, word, YAML_NOUNS, discreet=True)),
                suggest(word, known) if extra else "",
            ))
        return None


def _table(config: Config, dialect: Dialect, problems: list[Problem]) -> Table | None:
    override = config.mappings.get(dialect.name)
    try:
        table = load_table(builtin_path(dialect.name), Vocabulary.of(dialect), [override] if override else [])
        for framing in dialect.framings:
            table.encoder(framing)
        return table
    except Problems as found:
        problems += found.problems
        return None


def _agent(
    name: str,
    agent: AgentSettings,
    config: Config,
    kept: MadeBackend | None,
    document: YamlDocument,
    problems: list[Problem],
) -> tuple[m.AgentCard, MadeBackend] | None:
    found = _backend(agent.backend, agent.settings, config, ("agents", name), document, problems, kept)
    return (merge_card(found[0], name, agent), found[1]) if found else None


def _reusable_backend(name: str, config: Config, old: Components | None) -> MadeBackend | None:
    """The backend of before, if neither its settings nor its code have changed."""
    if old is None or old.config.agents.get(name) != config.agents[name]:
        return None
    if any(getattr(old.config, word) != getattr(config, word) for word in ("shadow", "outbound", "workspace")):
        return None
    made = old.made.get(name)
    return None if made is None or (made.module is not None and made.module.is_stale) else made


def _backend(
    word: str,
    settings: Mapping[str, JsonValue],
    config: Config,
    at: NodePath,
    document: YamlDocument,
    problems: list[Problem],
    kept: MadeBackend | None = None,
) -> tuple[m.AgentCard, MadeBackend] | None:
    base = config.file.parent if config.file else Path()
    context = BackendContext(base, AddressPolicy(config.outbound.allow), config.workspace.trust)
    try:
        kind = kinds.kind_of(word, base)
        made = kept or _made_or_reported(
            lambda: kind.make(settings, context), kind.settings.model_fields if kind.settings else (),
            (*at, "settings"), document, problems,
        )
    except GatewayError as error:
        hint = suggest(word, kinds.known_kinds()) or (
            f"there are {', '.join(kinds.known_kinds())}, and module:Class")
        problems.append(Problem(document.position((*at, "backend")), error.message, hint))
        return None
    except Problems as found:
        problems += found.problems
        return None
    return (made.card or kind.card, made) if made else None


def _add_shadows(
    agents: dict[str, tuple[m.AgentCard, MadeBackend] | None],
    config: Config,
    old: Components | None,
    document: YamlDocument,
    problems: list[Problem],
) -> None:
    """Give each agent that is to have a shadow a shadow backend of its own."""
    wanted = config.shadow
    if wanted is None:
        return
    known = _named_agents(config, document)
    for number, name in enumerate(wanted.agents or ()):
        if name not in known:
            problems.append(Problem(
                document.position(("shadow", "agents", number)), f"there is no agent '{name}'", suggest(name, known)))
    if not any(agents.values()):
        _backend(wanted.backend, wanted.settings, config, ("shadow",), document, problems)
    reporter = ShadowReport(config.data / wanted.report)
    options = ShadowOptions(share=wanted.share, at_once=wanted.max_concurrent, seconds=wanted.timeout_seconds)
    for name, agent in agents.items():
        if (
            agent is None
            or (wanted.agents is not None and name not in wanted.agents)
            or _reusable_backend(name, config, old)
        ):
            continue
        shadow = _backend(wanted.backend, wanted.settings, config, ("shadow",), document, problems)
        if shadow is None:
            return
        card, made = agent
        agents[name] = card, MadeBackend(
            shadowed(made.backend, shadow[1].backend, reporter, options), module=made.module,
        )


def component_problems(config: Config) -> list[Problem]:
    """Every mistake in what the settings name."""
    try:
        load_components(config)
    except Problems as found:
        return found.problems
    return []


RETIREMENT_POLL_SECONDS = 1.0
"""How often it is checked whether a retired agent still runs a turn."""


class BackendRetirement:
    """Closes backends that were replaced, each when its last turn has ended."""

    def __init__(self, is_busy: Callable[[Backend], bool]) -> None:
        self._is_busy = is_busy
        self._waiting: dict[asyncio.Task[None], Backend] = {}

    def retire(self, backends: Iterable[Backend]) -> None:
        for backend in backends:
            task = asyncio.get_running_loop().create_task(self._close_when_done(backend))
            self._waiting[task] = backend
            task.add_done_callback(self._waiting.pop)

    async def close(self) -> None:
        """Close the backends that are left, even if they run a turn."""
        for task, backend in list(self._waiting.items()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await backend.close()

    async def _close_when_done(self, backend: Backend) -> None:
        while self._is_busy(backend):  # noqa: ASYNC110  # nothing reports the end of the turns of one backend
            await asyncio.sleep(RETIREMENT_POLL_SECONDS)
        await asyncio.shield(backend.close())
