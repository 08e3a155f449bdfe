"""From a file, the environment and the command line to a Config: read, lay over, shape, check; all problems at once."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from gateway.marks import Marked, Path_, Place, Problem, Problems, nearest, read, shape_problems

from .checks import check
from .old_names import move_old_names
from .settings import Config, TlsSettings
from .variables import variables


class Origin(Place):
    """Where a setting comes from that is in no file: an option of the command line, a variable of the environment."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.file


NAMING = ("dialects", "agents", "mappings", "shadow")
"""Settings that name parts, whose own mistakes are looked for even if others are wrong."""
TEMPLATE = Path(__file__).with_name("template.yaml")
"""The settings that come with the program: they serve the demo agent, and explain every setting."""


def load_config(path: Path | str, overrides: Mapping[str, Any] | None = None) -> Config:
    """The command line goes before the environment, the environment before the file, the file before the defaults.

    `overrides` are the command line's, by setting; what is None was not given. Raises `Problems`.
    """
    document = read(path)
    _must_be_settings(document)
    values, names, problems = variables(os.environ)
    document.problems += (Problem(Origin(f"variable {name}"), text, hint) for name, text, hint in problems)
    lay_over(document, values, lambda at: f"variable {_named_by(at, names)}")
    lay_over(document, _given(overrides or {}), lambda at: f"option --{'-'.join(map(str, at))}")
    warnings = move_old_names(document)
    config = _shaped(document)
    if document.problems or config is None:
        rest = _rest(document)
        raise ConfigProblems(document.problems, _at_home(rest, Path(path)) if rest else None)
    whole = _at_home(config, Path(path))
    whole._warnings = tuple(map(str, warnings))
    return whole


class ConfigProblems(Problems):
    """What is wrong with the settings; `rest` is what can be made of them, so that more mistakes can be looked for."""

    def __init__(self, problems: Iterable[Problem], rest: Config | None) -> None:
        super().__init__(problems)
        self.rest = rest


def _rest(document: Marked) -> Config | None:
    """What is in order of the dialects, the agents and what belongs to them; each mistake of shape is left out."""
    value = {name: deepcopy(document.value[name]) for name in NAMING if name in document.value}
    while True:
        try:
            config = Config.model_validate(value)
        except ValidationError as error:
            if not _leave_out(value, error.errors(include_url=False)[0]["loc"]):
                return None
        else:
            home = Path(document.file).parent
            there = {name: file for name, file in config.mappings.items() if (home / file).is_file()}
            return config.model_copy(update={"mappings": there})


def _leave_out(value: Any, loc: Sequence[str | int]) -> bool:
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


def _must_be_settings(document: Marked) -> None:
    if document.value is None and document.problems:
        raise Problems(replace(problem, hint=problem.hint or _HINTS.get(problem.message, ""))
                       for problem in document.problems)
    if document.value is None:
        document.value = {}
    if not isinstance(document.value, dict):
        raise Problems([Problem(document.place(()), "the settings must be a mapping", "write them as `name: value`")])


_HINTS = {"there is no such file": "name another with --config"}


def lay_over(document: Marked, layer: Mapping[str, Any], origin: Callable[[Path_], str], path: Path_ = ()) -> None:
    """Put the values of the layer in the place of the document's, and remember where they came from."""
    target = document.value
    for step in path:
        target = target[step]
    for key, value in layer.items():
        at = (*path, key)
        if isinstance(value, dict) and value:
            if not isinstance(target.get(key), dict):
                _replace(document, target, at, {}, origin(at))
            lay_over(document, value, origin, at)
        else:
            _replace(document, target, at, value, origin(at))


def _replace(document: Marked, target: dict[Any, Any], at: Path_, value: Any, origin: str) -> None:
    for places in (document.keys, document.values):
        for stale in [path for path in places if path[:len(at)] == at]:
            del places[stale]
    target[at[-1]] = value
    document.keys[at] = document.values[at] = Origin(origin)


def _given(overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _given(value) if isinstance(value, Mapping) else value
            for name, value in overrides.items() if value is not None}


def _named_by(at: Path_, names: Mapping[Path_, str]) -> str:
    """The variable that said it: a whole group may come as JSON in one, or a setting of it in one of its own."""
    above = (names[at[:end]] for end in range(len(at), 0, -1) if at[:end] in names)
    below = (name for path, name in names.items() if path[:len(at)] == at)
    return next(above, None) or next(below)


def _shaped(document: Marked) -> Config | None:
    document.problems += take_unknown(document, document.value, Config)
    document.problems += check(document)
    try:
        return Config.model_validate(document.value)
    except ValidationError as error:
        document.problems += shape_problems(error, document)
        return None


def take_unknown(document: Marked, value: Any, model: type[BaseModel], at: Path_ = ()) -> Iterator[Problem]:
    """Take out what the model does not know, with a hint at what it does: at every level the model has."""
    if not isinstance(value, dict):
        return
    if model.model_config.get("extra") != "allow":
        for key in [key for key in value if key not in model.model_fields]:
            place = document.place((*at, key), key=True)
            yield Problem(place, f"there is no setting '{key}'", nearest(key, model.model_fields))
            del value[key]
    for name, field in model.model_fields.items():
        for inner, (path, held) in _inside(field.annotation, (*at, name), value.get(name)):
            yield from take_unknown(document, held, inner, path)


def _inside(annotation: Any, at: Path_, value: Any) -> Iterator[tuple[type[BaseModel], tuple[Path_, Any]]]:
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


def _at_home(config: Config, file: Path) -> Config:
    """Make relative paths whole: they begin at the folder of the file, those of the template where the user stands."""
    home = Path.cwd() if file == TEMPLATE else file.absolute().parent
    whole = config.model_copy(update={
        "data": home / config.data,
        "mappings": {name: home / table for name, table in config.mappings.items()},
        "tls": config.tls and TlsSettings(certificate=home / config.tls.certificate, key=home / config.tls.key),
    })
    whole._file, whole._shown = file.absolute(), file
    return whole
