"""Reads YAML with the position of every node, and formats problems as `file:line:column: message; hint`."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from gateway.field_errors import YAML_NOUNS, describe_error

NodePath = tuple[str | int, ...]
"""The path to a node: keys and list indexes from the top."""


class Position(NamedTuple):
    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Problem:
    """One problem: its position, a message, and a hint."""

    position: Position
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.position}: {self.message}" + (f"; {self.hint}" if self.hint else "")


class Problems(Exception):
    """All problems of one or several files."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.position, problem.message))
        super().__init__("\n".join(map(str, self.problems)))


class YamlDocument:
    """A YAML document: its plain value, the position of every key and value, and the problems of reading it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.value: Any = None
        self.keys: dict[NodePath, Position] = {}
        self.values: dict[NodePath, Position] = {}
        self.problems: list[Problem] = []

    def position(self, path: NodePath, *, key: bool = False) -> Position:
        """Return the position of the node, or of the nearest node above it that exists."""
        for end in range(len(path), -1, -1):
            at = path[:end]
            found = self.keys.get(at) if key or end < len(path) else None
            found = found or self.values.get(at)
            if found:
                return found
        return Position(self.file)

    def move_positions(self, old: NodePath, new: NodePath) -> None:
        """Let the node at `new`, and all below it, have the positions of the node that was at `old`."""
        for positions in (self.keys, self.values):
            for path in [path for path in positions if path[:len(old)] == old]:
                positions[(*new, *path[len(old):])] = positions.pop(path)


def read_yaml(file: Path | str, text: str | None = None) -> YamlDocument:
    """Read a file (or `text` under its name). Duplicate keys and broken YAML become problems, not exceptions."""
    marked = YamlDocument(str(file))
    try:
        text = Path(file).read_text("utf-8") if text is None else text
        node = _compose(text)
    except FileNotFoundError:
        marked.problems.append(Problem(Position(marked.file), "there is no such file"))
    except (OSError, UnicodeDecodeError) as error:
        marked.problems.append(Problem(Position(marked.file), f"cannot be read: {error}"))
    except yaml.YAMLError as error:
        marked.problems.append(_syntax(marked.file, error))
    else:
        loader = yaml.SafeLoader("")
        marked.value = _build(node, (), marked, loader) if node is not None else None
    return marked


def _compose(text: str) -> Any:
    """Parse with libyaml, which is ten times faster; errors and tabs go to the Python parser and its messages."""
    if yaml.__with_libyaml__ and "\t" not in text:
        with suppress(yaml.YAMLError):
            return yaml.compose(text, Loader=yaml.CSafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _syntax(file: str, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    place = Position(file, mark.line + 1, mark.column + 1) if mark else Position(file)
    words = [getattr(error, "context", None), getattr(error, "problem", None)]
    return Problem(place, "not YAML: " + (", ".join(word for word in words if word) or str(error)))


def _build(node: yaml.Node, path: NodePath, marked: YamlDocument, loader: yaml.SafeLoader) -> Any:
    mark = node.start_mark
    marked.values[path] = Position(marked.file, mark.line + 1, mark.column + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, (*path, index), marked, loader) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _build_mapping(node, path, marked, loader)
    return loader.construct_object(node)


def _build_mapping(
    node: yaml.MappingNode, path: NodePath, marked: YamlDocument, loader: yaml.SafeLoader
) -> dict[Any, Any]:
    built: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        place = Position(marked.file, key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        if not isinstance(key_node, yaml.ScalarNode):
            marked.problems.append(Problem(place, "a key must be a plain word"))
            continue
        key = key_node.value if key_node.tag in _PLAIN_KEY_TAGS else loader.construct_object(key_node)
        if key in built:
            hint = f"the first is in line {marked.keys[(*path, key)].line}"
            marked.problems.append(Problem(place, f"'{key}' is here a second time", hint))
            continue
        marked.keys[(*path, key)] = place
        built[key] = _build(value_node, (*path, key), marked, loader)
    return built


_PLAIN_KEY_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge", "tag:yaml.org,2002:bool"}


def suggest(word: str, words: Iterable[str]) -> str:
    """Return a hint with the most similar word, or nothing."""
    close = get_close_matches(str(word), list(words), n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else ""


def validation_problems(
    error: ValidationError, marked: YamlDocument, known: dict[str, Iterable[str]] | None = None,
) -> Iterator[Problem]:
    """Yield the errors of pydantic as problems; `known` has the words for hints, by the name of the parent."""
    for found in error.errors(include_url=False):
        path = _path_in(found["loc"], marked)
        extra, missing = found["type"] == "extra_forbidden", found["type"] == "missing"
        word = str(found["loc"][-1]) if found["loc"] else ""
        parent = str(path[-2]) if len(path) > 1 else ""
        hint = suggest(word, (known or {}).get(parent, ())) if extra else ""
        text = (f"there is no setting '{word}'" if extra else f"'{word}' is missing" if missing
                else str(describe_error(found, _dotted(path), YAML_NOUNS)))
        yield Problem(marked.position(path[:-1] if missing else path, key=extra), text, hint)


def _dotted(path: NodePath) -> str:
    return ".".join(map(str, path))


def _path_in(loc: tuple[str | int, ...], marked: YamlDocument) -> NodePath:
    """Return the path of a location: pydantic adds the names of union members, which are not in the document."""
    path: NodePath = ()
    for step in loc:
        if (*path, step) in marked.values or step == loc[-1]:
            path = (*path, step)
    return path
