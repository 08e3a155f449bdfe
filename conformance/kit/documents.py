"""YAML documents read into pydantic models, with every problem named at once, and its line."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .field_errors import words_of

Model = TypeVar("Model", bound=BaseModel)
Place = Sequence[int | str]
FEW = 40
"""As many names can be listed in one line of an error."""


class DocumentError(Exception):
    """A YAML document of the suite or of its user is not valid."""

    def __init__(self, path: Path, problems: Sequence[str], lines: Sequence[int | None] = ()) -> None:
        self.path = path
        self.problems = list(problems)
        numbers = [*lines, *(None for _ in problems)]
        places = [f"{path}:{line}" if line else str(path) for line in numbers]
        super().__init__("\n".join(f"{place}: {problem}" for place, problem in zip(places, problems, strict=False)))


def read_document(path: Path, model: type[Model]) -> Model:
    """The document at `path` as a `model`; DocumentError names every problem."""
    text = _text(path)
    try:
        found = _loaded(text)
    except yaml.YAMLError as error:
        raise DocumentError(path, [f"is not YAML: {_one_line(error)}"]) from None
    if not isinstance(found, dict):
        raise DocumentError(path, ["must be a mapping, as `{name: value}`"])
    try:
        return model.model_validate(found)
    except ValidationError as error:
        told = [_problem(item["loc"], _words(item, model)) for item in error.errors()]
        raise DocumentError(path, told, [line_of(text, item["loc"]) for item in error.errors()]) from None


def _loaded(text: str) -> Any:
    """Load with libyaml, which is ten times as fast; PyYAML's own loader reads texts with tabs, and names errors."""
    if yaml.__with_libyaml__ and "\t" not in text:
        with suppress(yaml.YAMLError):
            return yaml.load(text, Loader=yaml.CSafeLoader)
    return yaml.safe_load(text)


def line_of(text: str, place: Place) -> int | None:
    """The line of a valid YAML text where the member at this path is written, or the nearest parent of it."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = None
    for step in place:
        found = _member(node, step)
        if found is None:
            break
        mark, node = found
        line = mark.line + 1
    return line


def _member(node: yaml.Node | None, step: int | str) -> tuple[yaml.Mark, yaml.Node] | None:
    """Where a member of a node begins, and the node of its value."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark, value) for key, value in node.value if key.value == str(step)), None)
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DocumentError(path, [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError as error:
        raise DocumentError(path, [f"is not UTF-8: {error.reason}"]) from None


def _problem(place: Place, message: str) -> str:
    where = ".".join(str(step) for step in place)
    return f"{where}: {message}" if where else message


def _words(error: ErrorDetails, model: type[BaseModel]) -> str:
    """The problem in words; for an unknown name, with the most similar known name."""
    if error["type"] == "extra_forbidden":
        return f"there is no such entry; {nearest(str(error['loc'][-1]), _entries(model, error['loc'][:-1]))}"
    if error["type"] == "literal_error":
        allowed = re.findall("'([^']*)'", error["ctx"]["expected"])
        return f"there is no {error['input']!r}; {nearest(str(error['input']), allowed)}"
    return words_of(error)


def nearest(name: str, known: Collection[str]) -> str:
    """A hint: the most similar known name, or all known names if they are few."""
    near = get_close_matches(name, known, n=1)
    if near:
        return f"do you mean {near[0]!r}?"
    return f"there is: {', '.join(known)}" if len(known) <= FEW else "nothing has a similar name"


def _entries(model: type[BaseModel], place: Place) -> list[str]:
    """The names of the entries that a part of a document may have."""
    for step in place:
        if isinstance(step, str):
            model = next(_models(model.model_fields[step].annotation))
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names, such as `Entry` in `tuple[Entry, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())
