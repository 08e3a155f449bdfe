"""Loads the settings from the file, the environment and the command line, and reports all problems together.

Variables of the environment: DRAGOMAN_PORT, DRAGOMAN_LIMITS__TURN_SECONDS, or a whole group as JSON (DRAGOMAN_LIMITS).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError, create_model

from gateway.json_values import JsonObject, JsonValue
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
from .deprecated_names import RENAMED_SETTINGS, move_origin_settings, rename_settings
from .settings import Config, ConfigSource, TlsSettings


class SettingSource(Position):
    """The position of a setting that is in no file: an option of the command line, or a variable of the environment."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.file


COMPONENT_SETTINGS = ("dialects", "agents", "mappings", "dialect_folders", "shadow")
"""Settings that name components; their mistakes are reported even if other settings are wrong."""
TEMPLATE = Path(__file__).with_name("template.yaml")
"""The settings file of `dragoman init`: it serves the demo agent and explains every setting."""


def load_config(path: Path | str, overrides: Mapping[str, object] | None = None, source: str = "option --") -> Config:
    """Return the settings: the command line before the environment, the environment before the file, then the defaults.

    `overrides` are the options of the command line, by setting; None means that the option was not given. Messages name
    an override by its `source` and its name. Raises `ConfigProblems`.
    """
    document = read_yaml(path)
    _check_is_mapping(document)
    environment = read_environment(os.environ)
    warnings = rename_settings(document) + rename_settings(environment)
    document.problems += environment.problems
    overlay(document, environment.value, lambda at: str(environment.position(at)))
    overlay(document, _without_none(overrides or {}), lambda at: f"{source}{'-'.join(map(str, at))}")
    warnings += move_origin_settings(document)
    config = _validated(document)
    file = Path(path)
    if document.problems or config is None:
        rest = _usable_settings(document)
        raise ConfigProblems(document.problems, _from_file(rest, file) if rest else None)
    return _from_file(config, file, tuple(map(str, warnings)))


def make_config(settings: Mapping[str, object]) -> Config:
    """Return the settings that a program gives as arguments. Raises `ConfigProblems`."""
    document = YamlDocument("the arguments")
    document.value = {}
    overlay(document, _without_none(settings), lambda at: f"argument {'.'.join(map(str, at))}")
    config = _validated(document)
    if document.problems or config is None:
        raise ConfigProblems(document.problems, None)
    return config


class ConfigProblems(Problems):
    """All problems of the settings; `usable` has the correct settings, so that their components can be checked too."""

    def __init__(self, problems: Iterable[Problem], usable: Config | None) -> None:
        super().__init__(problems)
        self.usable = usable


def _usable_settings(document: YamlDocument) -> Config | None:
    """Return the settings of the components without the values that do not validate."""
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
    """Delete the node at this path, or the nearest existing node above it; return whether a node was deleted."""
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
    document: YamlDocument, layer: Mapping[str, JsonValue], origin: Callable[[NodePath], str], path: NodePath = ()
) -> None:
    """Replace values of the document by those of the layer, and set their positions to the origin of the layer."""
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


def _replace(
    document: YamlDocument, target: dict[JsonValue, JsonValue], at: NodePath, value: JsonValue, origin: str,
) -> None:
    for places in (document.keys, document.values):
        for stale in [path for path in places if path[:len(at)] == at]:
            del places[stale]
    target[at[-1]] = value
    document.keys[at] = document.values[at] = SettingSource(origin)


def _without_none(overrides: Mapping[str, object]) -> dict[str, Any]:
    return {name: _without_none(value) if isinstance(value, Mapping) else value
            for name, value in overrides.items() if value is not None}


def _variable_for(at: NodePath, names: Mapping[NodePath, str]) -> str:
    """Return the variable that has the setting: one for the whole group as JSON, or one for the setting alone."""
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


def remove_unknown(
    document: YamlDocument, value: object, model: type[BaseModel], at: NodePath = (),
) -> Iterator[Problem]:
    """Delete settings that the model does not know, at every level; yield a problem with a suggestion for each."""
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


def _nested_models(
    annotation: object, at: NodePath, value: JsonValue,
) -> Iterator[tuple[type[BaseModel], tuple[NodePath, JsonValue]]]:
    """Yield the model of a field with each value that the model validates, and the path of the value."""
    model = next(_models(annotation), None)
    if model is None:
        return
    if annotation is model or annotation == model | None:
        yield model, (at, value)
    elif isinstance(value, dict):
        yield from ((model, ((*at, key), held)) for key, held in value.items())
    elif isinstance(value, list):
        yield from ((model, ((*at, index), held)) for index, held in enumerate(value))


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _from_file(config: Config, file: Path, warnings: tuple[str, ...] = ()) -> Config:
    """Make relative paths absolute: from the folder of the file, or from the current folder for the template."""
    home = Path.cwd() if file == TEMPLATE else file.absolute().parent
    absolute = config.model_copy(update={
        "data": home / config.data,
        "files": str(home / config.files) if config.files and config.files_folder else config.files,
        "mappings": {name: home / table for name, table in config.mappings.items()},
        "dialect_folders": tuple(home / folder for folder in config.dialect_folders),
        "tls": config.tls and TlsSettings(certificate=home / config.tls.certificate, key=home / config.tls.key),
        "management": config.management.model_copy(update={
            name: folder and home / folder for name in ("skills", "docs")
            for folder in [getattr(config.management, name)]
        }),
    })
    return absolute.with_source(ConfigSource(file.absolute(), file, warnings))


PREFIX = "DRAGOMAN_"
COMMAND_VARIABLES = frozenset(("config", "key", "workers"))
"""Variables that the command line reads: the settings file, the key of the user, and how many processes serve."""


def read_environment(environ: Mapping[str, str]) -> YamlDocument:
    """Return the settings of the environment as a document; the position of each setting is its variable."""
    document = YamlDocument("the environment")
    document.value = {}
    names = {_setting_path(name): name for name in environ if name.upper().startswith(PREFIX)}
    if not names:
        return document  # the import of pydantic-settings takes a tenth of a second, and most starts do not need it
    document.problems += _unknown_variables(names)
    try:
        overlay(document, _environment_values(), lambda at: f"variable {_variable_for(at, names)}")
    except ValueError as error:
        document.problems += _json_problems(names, environ, error)
    return document


def _variable_problem(name: str, message: str, hint: str) -> Problem:
    return Problem(SettingSource(f"variable {name}"), message, hint)


def _setting_path(name: str) -> NodePath:
    return tuple(name[len(PREFIX):].lower().split("__"))


def _environment_values() -> JsonObject:
    from pydantic_settings import BaseSettings, EnvSettingsSource

    source = EnvSettingsSource(
        cast("type[BaseSettings]", _config_with_old_names()),
        case_sensitive=False, env_prefix=PREFIX, env_nested_delimiter="__",
    )
    return source()


def _config_with_old_names() -> type[BaseModel]:
    """Return Config with the old names of its settings as further fields: the source reads variables of fields only."""
    renamed = {str(old[0]): Config.model_fields[new.name] for old, new in RENAMED_SETTINGS.items() if len(old) == 1}
    fields: Any = {old: (field.annotation, field.default) for old, field in renamed.items()}
    return create_model("ConfigWithOldNames", __base__=Config, **fields)


def _unknown_variables(names: Mapping[NodePath, str]) -> Iterator[Problem]:
    """Report variables that resemble a setting. Cluster managers set others for a service that is named dragoman."""
    for path, name in names.items():
        head = str(path[0])
        if (
            head not in Config.model_fields
            and (head,) not in RENAMED_SETTINGS
            and head not in COMMAND_VARIABLES
            and (hint := suggest(head, Config.model_fields))
        ):
            yield _variable_problem(name, f"there is no setting '{head}'", hint)


def _json_problems(
    names: Mapping[NodePath, str], environ: Mapping[str, str], error: ValueError
) -> Iterator[Problem]:
    import orjson

    found = 0
    fields = _config_with_old_names().model_fields
    for path, name in names.items():
        annotation = fields[str(path[0])].annotation if len(path) == 1 and path[0] in fields else None
        if _is_list(annotation) or _is_group(annotation):
            try:
                orjson.loads(environ[name])
            except ValueError as cause:
                found += 1
                kind, hint = "a whole group", f"or set one of it: {name}__…"
                if _is_list(annotation):
                    kind, hint = "a list", f"""write it as {name}='["…", "…"]'"""
                yield _variable_problem(name, f"{kind} must be JSON: {cause}", hint)
    if not found:
        yield _variable_problem(PREFIX + "*", str(error), "")


def _is_list(annotation: object) -> bool:
    """Say whether the setting is a list and nothing but a list (`auth` may be a word too)."""
    kinds = [get_origin(kind) or kind for kind in (annotation, *get_args(annotation))]
    return tuple in kinds and str not in kinds[1:]


def _is_group(annotation: object) -> bool:
    return get_origin(annotation) is dict or next(_models(annotation), None) is not None
