"""Loads a table from a file: read, apply overrides, shape, check, compile; all problems are reported together."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mappings
from gateway.json_values import JsonValue
from gateway.ports import Dialect
from gateway.yaml_positions import NodePath, Problem, Problems, YamlDocument, read_yaml, suggest

from .check import check_table
from .expressions import MERGE, SPLICE, parse_expression, slots
from .parsed_table import ProblemCollector, parse_table
from .routes import check_routes
from .scopes import ObjectNames, Vocabulary, object_names
from .shape import FRAME_KEYS, shape_table
from .spellings import check_reading
from .table import Table

OBJECTS, DROP, ALSO = "objects", "$drop", "also"
ID, TYPE = "id", "type"


class Member(NamedTuple):
    """One member of a row, with the names that its value uses."""

    key: Any
    value: Any
    names: set[str]


def complete_objects(document: YamlDocument, objects: Mapping[str, ObjectNames]) -> None:
    """Write the names that the rows leave out into the document, before any override changes it."""
    section = document.value.get(OBJECTS) if isinstance(document.value, dict) else None
    if not isinstance(section, dict):
        return
    document.value[OBJECTS] = {
        name: complete_row(row, object_names(objects[name])) if name in objects and isinstance(row, dict) else row
        for name, row in section.items()
    }


def complete_row(row: dict[object, object], names: tuple[str, ...]) -> dict[Any, Any]:
    """The row with the names that it does not mention, each after the name that is declared before it.

    `id` stands first, before a constant `type`. `name: $drop` leaves a name out, and `...: $drop` all that are not
    mentioned.
    """
    if row.get(SPLICE) == DROP:
        return {key: value for key, value in row.items() if value != DROP}
    members = [Member(key, value, _names_in(value)) for key, value in row.items() if value != DROP and key != ALSO]
    mentioned = {name for member in members for name in member.names} | set(row)
    for number, name in enumerate(names):
        if name not in mentioned:
            members.insert(_place(members, name, names[:number], names), Member(name, f"${name}", {name}))
    completed = {member.key: member.value for member in members}
    return {**completed, **({ALSO: row[ALSO]} if ALSO in row else {})}


def _place(members: list[Member], name: str, before: tuple[str, ...], names: tuple[str, ...]) -> int:
    for other in reversed(before):
        using = [place for place, member in enumerate(members) if other in member.names]
        found = using or [place for place, member in enumerate(members) if other == member.key]
        if found:
            return _behind(members, found[0])
    if name == ID:
        return 0
    known = set(names)
    return next((place for place, member in enumerate(members) if member.names & known or member.key in known),
                len(members))


def _behind(members: list[Member], place: int) -> int:
    """The place after this one; a constant `type` stays beside what it follows."""
    following = members[place + 1] if place + 1 < len(members) else None
    return place + (2 if following and following.key == TYPE and not following.names else 1)


def _names_in(value: object) -> set[str]:
    node = parse_expression(value, (), lambda path, message: None)
    return {slot.name for slot, _ in slots(node)}


def builtin_path(dialect: str) -> Path:
    """Where the table of a dialect that comes with the gateway is kept; if there is none, where it would be."""
    places = [Path(folder) / f"{dialect}.yaml" for folder in mappings.__path__]
    return next((place for place in places if place.is_file()), places[0])


def builtin_table(dialect: Dialect) -> Table:
    """The built-in table of a dialect, without overrides."""
    return load_table(builtin_path(dialect.name), Vocabulary.of(dialect))


def load_table(path: Path | str, vocabulary: Vocabulary, overrides: Sequence[Path | str] = ()) -> Table:
    """Raises `Problems`, naming every mistake of the table and its overrides.

    An override changes what is written, never what is read: only the table itself decides which row a frame is.
    """
    marked = own = read_table(path)
    complete_objects(marked, vocabulary.objects)
    for override in overrides:
        marked = apply_override(marked, read_table(override))
    shaped = shape_table(marked)
    findings = ProblemCollector(marked)
    drafted = parse_table(shaped, findings)
    if marked.value is not None:
        before = parse_table(shape_table(own), ProblemCollector(own)) if overrides else drafted
        check_table(drafted, vocabulary, findings, before)
        check_routes(drafted, Path(path).stem, findings)
        if not overrides and not findings.problems and not shaped.problems:
            check_reading(drafted, vocabulary, findings)
    problems = [*marked.problems, *shaped.problems, *findings.problems]
    if problems:
        raise Problems(problems)
    return Table(drafted, vocabulary, marked)


RENAMED_SECTIONS = {"heard": "client_support"}
"""Sections by the names that they had in earlier releases; docs/upgrading.md lists them."""


def read_table(path: Path | str) -> YamlDocument:
    """A table or an override; a section under an old name gets its new name, and a warning says so."""
    document = read_yaml(path)
    sections = document.value if isinstance(document.value, dict) else {}
    for old, new in RENAMED_SECTIONS.items():
        if old not in sections:
            continue
        position = document.position((old,), key=True)
        if new in sections:
            document.problems.append(Problem(position, f"'{old}' is the old name of '{new}', and both are there"))
            del sections[old]
            continue
        warnings.warn(str(Problem(position, f"the section '{old}' is called '{new}' now")), FutureWarning, stacklevel=3)
        sections[new] = sections.pop(old)
        document.move_positions((old,), (new,))
    return document


def apply_override(base: YamlDocument, override: YamlDocument) -> YamlDocument:
    """The table with the override applied; every part keeps the position in its own file."""
    merged = YamlDocument(base.file)
    merged.keys, merged.values = dict(base.keys), dict(base.values)
    merged.problems = [*base.problems, *override.problems]
    merged.value = base.value
    if isinstance(override.value, dict) and isinstance(base.value, dict):
        merged.value = _OverrideMerge(merged, override).mapping(base.value, override.value, (), ())
        _check_dialect(base, override, merged)
    elif override.value is not None:
        merged.problems.append(Problem(override.position(()), "an override is a mapping of sections, like the table"))
    return merged


def _check_dialect(base: YamlDocument, override: YamlDocument, merged: YamlDocument) -> None:
    ours, theirs = base.value.get("dialect"), override.value.get("dialect", base.value.get("dialect"))
    if ours != theirs:
        message = f"this is an override for '{theirs}', laid over the table of '{ours}'"
        merged.problems.append(Problem(override.position(("dialect",)), message))


class _OverrideMerge:
    def __init__(self, merged: YamlDocument, override: YamlDocument) -> None:
        self._merged = merged
        self._override = override

    def mapping(self, base: dict[Any, Any], over: dict[Any, Any], path: NodePath, source: NodePath) -> dict[Any, Any]:
        """Merge key by key; `path` is the place in the table, `source` the place in the override."""
        result = dict(base)
        for written, value in over.items():
            key = SPLICE if written == MERGE and isinstance(value, str) else written
            here, there = (*path, key), (*source, written)
            if value == DROP:
                self._drop(result, key, path, there)
            elif path == ("frames",) and isinstance(value, dict):
                result[key] = self._frames(result.get(key), value, here, there)
            elif isinstance(value, dict) and isinstance(result.get(key), dict):
                result[key] = self.mapping(result[key], value, here, there)
            else:
                result[key] = self._taken(value, here, there)
        return result

    def _frames(self, base: Any, over: dict[Any, Any], path: NodePath, source: NodePath) -> Any:
        """A mapping over a list of frames changes the frames of those wire names; the others stay."""
        if not isinstance(base, list):
            self._problem(source, f"'{path[-1]}' is not spelled in the table", "write a list of frames")
            return []
        wires = [wire for frame in base for wire in frame if wire not in FRAME_KEYS]
        for wire in over:
            if wire not in wires:
                self._problem((*source, wire), f"'{path[-1]}' has no frame '{wire}'", suggest(wire, wires))
        kept: list[dict[Any, Any]] = []
        for index, frame in enumerate(base):
            changed = {wire: change for wire, change in over.items() if wire in frame}
            if DROP in changed.values():
                continue
            self._moved((*path, index), (*path, len(kept)))
            kept.append(self.mapping(frame, changed, (*path, len(kept)), source))
        return kept

    def _drop(self, result: dict[Any, Any], key: Any, path: NodePath, source: NodePath) -> None:
        if key not in result:
            self._problem(source, f"there is no '{key}' to drop", suggest(key, result))
        elif path:  # a problem of the removed key is a problem of this line
            self._merged.keys[path] = self._override.position(source, key=True)
        result.pop(key, None)

    def _taken(self, value: JsonValue, path: NodePath, source: NodePath) -> Any:
        """The value of the override, with its positions."""
        for ours, theirs in ((self._merged.keys, self._override.keys), (self._merged.values, self._override.values)):
            for old in [old for old in ours if old[: len(path)] == path]:
                del ours[old]
            depth = len(source)
            ours.update({(*path, *at[depth:]): place for at, place in theirs.items() if at[:depth] == source})
        return self._without_drops(value, source)

    def _without_drops(self, value: JsonValue, source: NodePath) -> object:
        if isinstance(value, dict):
            for key in [key for key, item in value.items() if item == DROP]:
                self._problem((*source, key), f"there is no '{key}' to drop")
            return {k: self._without_drops(v, (*source, k)) for k, v in value.items() if v != DROP}
        return value

    def _moved(self, old: NodePath, new: NodePath) -> None:
        if old == new:
            return
        for places in (self._merged.keys, self._merged.values):
            places.update({(*new, *at[len(old):]): place for at, place in list(places.items()) if at[:len(old)] == old})

    def _problem(self, source: NodePath, message: str, hint: str = "") -> None:
        self._merged.problems.append(Problem(self._override.position(source, key=True), message, hint))
