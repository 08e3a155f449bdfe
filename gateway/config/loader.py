"""From a file, the environment and the command line to a Config: read, lay over, shape, check; all problems at once.

DRAGOMAN_* variables of the environment: DRAGOMAN_PORT, DRAGOMAN_LIMITS__TURN_SECONDS, or a group as JSON.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError

from gateway.yaml_positions import (
    NodePath,
    Position,
    Problem,
    Problems,
    YamlDocument,
    read_yaml,
    suggest,
    validation_problems,
)

from .checks import check
from .deprecated_names import move_deprecated_names
from .settings import Config, TlsSettings


class SettingSource(Position):
    """Where a setting comes from that is in no file: an option of the command line, a variable of the environment."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.file


COMPONENT_SETTINGS = ("dialects", "agents", "mappings", "shadow")
"""Settings that name parts, whose own mistakes are looked for even if others are wrong."""
TEMPLATE = Path(__file__).with_name("template.yaml")
"""The settings that come with the program: they serve the demo agent, and explain every setting."""


def load_config(path: Path | str, overrides: Mapping[str, Any] | None = None) -> Config:
    """The command line goes before the environment, the environment before the file, the file before the defaults.

    `overrides` are the command line's, by setting; what is None was not given. Raises `Problems`.
    """
    document = read_yaml(path)
    _check_is_mapping(document)
    values, names, problems = environment_settings(os.environ)
    document.problems += (Problem(SettingSource(f"variable {name}"), text, hint) for name, text, hint in problems)
    overlay(document, values, lambda at: f"variable {_variable_for(at, names)}")
    overlay(document, _without_none(overrides or {}), lambda at: f"option --{'-'.join(map(str, at))}")
    warnings = move_deprecated_names(document)
    config = _validated(document)
    if document.problems or config is None:
        rest = _usable_settings(document)
        raise ConfigProblems(document.problems, _with_absolute_paths(rest, Path(path)) if rest else None)
    whole = _with_absolute_paths(config, Path(path))
    whole._warnings = tuple(map(str, warnings))
    return whole


class ConfigProblems(Problems):
    """What is wrong with the settings; `rest` is what can be made of them, so that more mistakes can be looked for."""

    def __init__(self, problems: Iterable[Problem], usable: Config | None) -> None:
        super().__init__(problems)
        self.usable = usable


def _usable_settings(document: YamlDocument) -> Config | None:
    """What is in order of the dialects, the agents and what belongs to them; each mistake of shape is left out."""
    value = {name: deepcopy(document.value[name]) for name in COMPONENT_SETTINGS if name in document.value}
    while True:
        try:
            config = Config.model_validate(value)
        except ValidationError as error:
            if not _drop_node(value, error.errors(include_url=False)[0]["loc"]):
                return None
        else:
            home = Path(document.file).parent
            there = {name: file for name, file in config.mappings.items() if (home / file).is_file()}
            return config.model_copy(update={"mappings": there})


def _drop_node(value: Any, loc: Sequence[str | int]) -> bool:
    """Take out the node at this place, or the nearest one above it; whether there was one."""
    holder, last = None, None
    for step in loc:
        if not (step in value if isinstance(value, dict) else isinstance(value, list) and step in range(len(value))):
            break
        holder, last, value = value, step, value[step]
    if holder is None:
        return False
    del holder[last]
    return True


def _check_is_mapping(document: YamlDocument) -> None:
    if document.value is None and document.problems:
        raise Problems(replace(problem, hint=problem.hint or _HINTS.get(problem.message, ""))
                       for problem in document.problems)
    if document.value is None:
        document.value = {}
    if not isinstance(document.value, dict):
        raise Problems(
            [Problem(document.position(()), "the settings must be a mapping", "write them as `name: value`")]
        )


_HINTS = {"there is no such file": "name another with --config"}


def overlay(
    document: YamlDocument, layer: Mapping[str, Any], origin: Callable[[NodePath], str], path: NodePath = ()
) -> None:
    """Put the values of the layer in the place of the document's, and remember where they came from."""
    target = document.value
    for step in path:
        target = target[step]
    for key, value in layer.items():
        at = (*path, key)
        if isinstance(value, dict) and value:
            if not isinstance(target.get(key), dict):
                _replace(document, target, at, {}, origin(at))
            overlay(document, value, origin, at)
        else:
            _replace(document, target, at, value, origin(at))


def _replace(document: YamlDocument, target: dict[Any, Any], at: NodePath, value: Any, origin: str) -> None:
    for places in (document.keys, document.values):
        for stale in [path for path in places if path[:len(at)] == at]:
            del places[stale]
    target[at[-1]] = value
    document.keys[at] = document.values[at] = SettingSource(origin)


def _without_none(overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _without_none(value) if isinstance(value, Mapping) else value
            for name, value in overrides.items() if value is not None}


def _variable_for(at: NodePath, names: Mapping[NodePath, str]) -> str:
    """The variable that said it: a whole group may come as JSON in one, or a setting of it in one of its own."""
    above = (names[at[:end]] for end in range(len(at), 0, -1) if at[:end] in names)
    below = (name for path, name in names.items() if path[:len(at)] == at)
    return next(above, None) or next(below)


def _validated(document: YamlDocument) -> Config | None:
    document.problems += remove_unknown(document, document.value, Config)
    document.problems += check(document)
    try:
        return Config.model_validate(document.value)
    except ValidationError as error:
        document.problems += validation_problems(error, document)
        return None


def remove_unknown(document: YamlDocument, value: Any, model: type[BaseModel], at: NodePath = ()) -> Iterator[Problem]:
    """Take out what the model does not know, with a hint at what it does: at every level the model has."""
    if not isinstance(value, dict):
        return
    if model.model_config.get("extra") != "allow":
        for key in [key for key in value if key not in model.model_fields]:
            place = document.position((*at, key), key=True)
            yield Problem(place, f"there is no setting '{key}'", suggest(key, model.model_fields))
            del value[key]
    for name, field in model.model_fields.items():
        for inner, (path, held) in _nested_models(field.annotation, (*at, name), value.get(name)):
            yield from remove_unknown(document, held, inner, path)


def _nested_models(annotation: Any, at: NodePath, value: Any) -> Iterator[tuple[type[BaseModel], tuple[NodePath, Any]]]:
    """The models below a field, each with the values that are to have its shape."""
    model = next(_models(annotation), None)
    if model is None:
        return
    if annotation is model or annotation == model | None:
        yield model, (at, value)
    elif isinstance(value, dict):
        yield from ((model, ((*at, key), held)) for key, held in value.items())
    elif isinstance(value, list):
        yield from ((model, ((*at, index), held)) for index, held in enumerate(value))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _with_absolute_paths(config: Config, file: Path) -> Config:
    """Make relative paths whole: they begin at the folder of the file, those of the template where the user stands."""
    home = Path.cwd() if file == TEMPLATE else file.absolute().parent
    whole = config.model_copy(update={
        "data": home / config.data,
        "mappings": {name: home / table for name, table in config.mappings.items()},
        "tls": config.tls and TlsSettings(certificate=home / config.tls.certificate, key=home / config.tls.key),
    })
    whole._file, whole._shown = file.absolute(), file
    return whole


PREFIX = "DRAGOMAN_"
COMMAND_VARIABLES = frozenset(("config", "key"))
"""Variables of the command line: they name the config file and the key to ask with."""
VariableProblem = tuple[str, str, str]
"""The variable, what is wrong with it, and a hint."""


def environment_settings(
    environ: Mapping[str, str],
) -> tuple[dict[str, Any], dict[NodePath, str], list[VariableProblem]]:
    """The settings that the environment makes, the variable behind each, and what is wrong with the variables."""
    names = {_setting_path(name): name for name in environ if name.upper().startswith(PREFIX)}
    if not names:
        return {}, {}, []  # pydantic-settings takes a tenth of a second to import, and most starts need none of it
    complaints = list(_unknown_variables(names))
    try:
        return _environment_values(), names, complaints
    except ValueError as error:
        return {}, names, [*complaints, *_json_problems(names, environ, error)]


def _setting_path(name: str) -> NodePath:
    return tuple(name[len(PREFIX):].lower().split("__"))


def _environment_values() -> dict[str, Any]:
    from pydantic_settings import BaseSettings, EnvSettingsSource

    source = EnvSettingsSource(
        cast("type[BaseSettings]", Config), case_sensitive=False, env_prefix=PREFIX, env_nested_delimiter="__",
    )
    return source()


def _unknown_variables(names: Mapping[NodePath, str]) -> Iterator[VariableProblem]:
    """Only what looks like a setting is a mistake: cluster managers set variables of their own in a service's name."""
    for path, name in names.items():
        head = str(path[0])
        if (
            head not in Config.model_fields
            and head not in COMMAND_VARIABLES
            and (hint := suggest(head, Config.model_fields))
        ):
            yield name, f"there is no setting '{head}'", hint


def _json_problems(
    names: Mapping[NodePath, str], environ: Mapping[str, str], error: ValueError
) -> Iterator[VariableProblem]:
    import orjson

    wrong = 0
    for path, name in names.items():
        if len(path) == 1 and path[0] in (_GROUPS | _LISTS):
            try:
                orjson.loads(environ[name])
            except ValueError as cause:
                wrong += 1
                if path[0] in _LISTS:
                    yield name, f"a list must be JSON: {cause}", f"""write it as {name}='["…", "…"]'"""
                else:
                    yield name, f"a whole group must be JSON: {cause}", f"or set one of it: {name}__…"
    if not wrong:
        yield PREFIX + "*", str(error), ""


_GROUPS = frozenset(("dialects", "agents", "mappings", "limits", "journal"))
_LISTS = frozenset(("hosts", "origins", "trusted_proxies"))
