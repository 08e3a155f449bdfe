"""A table as parsed templates: what `parse_table` makes of the sections, for the checks and the compilers."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gateway.json_values import JsonValue
from gateway.yaml_positions import NodePath, Position, Problem, YamlDocument

from .expressions import Node, Object, parse_expression
from .shape import (
    ALSO,
    ENVELOPE,
    FRAME_KEYS,
    KNOWN_BY,
    READ_ONLY,
    WHOSE,
    WRITE_ONLY,
    InputShape,
    OtherSpelling,
    ShapedTable,
    TableShape,
)

DEFAULT_ENVELOPE = "default"


class ProblemCollector:
    """Collects problems with their positions in the file."""

    def __init__(self, marked: YamlDocument) -> None:
        self._marked = marked
        self.problems: list[Problem] = []

    def place(self, path: NodePath) -> Position:
        return self._marked.position(path)

    def add(self, path: NodePath, message: str, hint: str = "", *, key: bool = False) -> None:
        problem = Problem(self._marked.position(path, key=key), message, hint)
        if problem not in self.problems:  # an anchor is written once and used in several places
            self.problems.append(problem)

    def add_message(self, path: NodePath, message: str) -> None:
        self.add(path, *message.split("; ", 1), key=path not in self._marked.values)


@dataclass(frozen=True)
class FrameTemplate:
    wire: str
    body: Node
    envelope: str
    path: NodePath
    write_only: str = ""
    read_only: str = ""
    known_by: tuple[tuple[str, ...], ...] | None = None
    """Members of which it must have one each; None where the table leaves it to the loader what tells rows apart."""
    also: tuple["FrameTemplate", ...] = ()


NOTHING = Object(())


@dataclass(frozen=True)
class InputTemplate:
    """One client message. Without `wire`, its names are bound by code: all of them in `given`, or those in `added`."""

    command: str
    given: Object
    path: NodePath
    wire: Node | None = None
    added: tuple[str, ...] = ()
    fixed: Object = NOTHING
    beside: tuple[str, ...] = ()
    also: tuple[Node, ...] = ()

    @property
    def is_bound_by_code(self) -> bool:
        """Whether it is in the form that has an expression for each field of the command."""
        return self.wire is None and not self.added and not self.fixed.items


@dataclass(frozen=True)
class ErrorTemplate:
    status: int | None
    body: Node


@dataclass
class ParsedTable:
    """All sections, parsed; `broken` sections stay empty."""

    shape: TableShape
    broken: set[str]
    envelopes: dict[str, Node] = field(default_factory=dict)
    parts: dict[str, Node | None] = field(default_factory=dict)
    further_parts: dict[str, list[Node]] = field(default_factory=dict)
    frames: dict[str, list[FrameTemplate]] = field(default_factory=dict)
    inputs: dict[str, InputTemplate] = field(default_factory=dict)
    objects: dict[str, Node] = field(default_factory=dict)
    other_objects: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    """By object: its further spellings."""
    errors: dict[str, ErrorTemplate] = field(default_factory=dict)

    def rows(self, name: str) -> list[Node]:
        """The templates of the rows of that name, in all spellings, frames with their envelopes."""
        frames = [one for frame in self.frames.get(name, ()) for one in (frame, *frame.also)]
        around = [self.envelopes[one.envelope] for one in frames if one.envelope in self.envelopes]
        own = [self.objects[name], *self.other_objects.get(name, ())] if name in self.objects else []
        own += [part for part in [self.parts.get(name)] if part is not None]
        sent = self.inputs.get(name)
        wires = [] if sent is None or sent.wire is None else [sent.wire, *sent.also]
        return [*(one.body for one in frames), *around, *own, *wires]

    def written(self, cue: str) -> list[FrameTemplate]:
        """The frames of the cue, without those that are only read."""
        return [frame for frame in self.frames.get(cue, ()) if not frame.read_only]

    def nodes(self) -> list[Node]:
        """Every expression, but for the inputs that code binds."""
        bodies = [one.body for frames in self.frames.values() for frame in frames for one in (frame, *frame.also)]
        parts = [part for part in self.parts.values() if part is not None]
        errors = [refusal.body for refusal in self.errors.values()]
        wires = [row.wire for row in self.inputs.values() if row.wire is not None]
        return [*bodies, *self.envelopes.values(), *parts, *self.objects.values(), *errors, *wires]


def parse_table(shaped: ShapedTable, findings: ProblemCollector) -> ParsedTable:
    """Parse all templates of a table; mistakes in expressions are added to the findings."""
    table, parser = shaped.table, _TemplateParser(findings)
    made = ParsedTable(table, shaped.broken)
    made.envelopes = {name: parser.node(body, "envelopes", name) for name, body in table.envelopes.items()}
    for kind, body in table.parts.items():
        made.parts[kind], made.further_parts[kind] = parser.part(kind, body)
    for name, body in table.objects.items():
        made.objects[name], made.other_objects[name] = parser.object_row(name, body)
    for cue, frames in table.frames.items():
        made.frames[cue] = [parser.frame(frame, "frames", cue, index) for index, frame in enumerate(frames)]
    made.inputs = {message: parser.input_row(message, spelled) for message, spelled in table.inputs.items()}
    for code, refusal in table.errors.items():
        made.errors[code] = ErrorTemplate(refusal.status, parser.node(refusal.body, "errors", code, "body"))
    return made


_OTHER_SPELLINGS = TypeAdapter(list[OtherSpelling])


class _TemplateParser:
    """Parses the rows of each section; a path names the place of a row in the table."""

    def __init__(self, findings: ProblemCollector) -> None:
        self._findings = findings

    def node(self, value: object, *path: str | int) -> Node:
        return parse_expression(value, path, self._findings.add_message)

    def part(self, kind: str, body: JsonValue) -> tuple[Node | None, list[Node]]:
        """The template of a kind of content, None if the kind is left out; and its further spellings."""
        if not isinstance(body, list):
            return self.node(body, "parts", kind), []
        further = [self.node(one[ALSO], "parts", kind, index, ALSO)
                   for index, one in enumerate(body) if index and isinstance(one, dict)]
        return self.node(body[0], "parts", kind, 0) if body else None, further

    def object_row(self, name: str, body: JsonValue) -> tuple[Node, tuple[Node, ...]]:
        """The template of an object, and its further spellings."""
        if not isinstance(body, dict) or ALSO not in body:
            return self.node(body, "objects", name), ()
        own = {key: value for key, value in body.items() if key != ALSO}
        try:
            others = _OTHER_SPELLINGS.validate_python(body[ALSO])
        except ValidationError:
            words = f"'{ALSO}' is a list of spellings, each with 'wire' and '{WHOSE}'"
            self._findings.add(("objects", name, ALSO), words)
            others = []
        further = (self.node(other.wire, "objects", name, ALSO, index, "wire") for index, other in enumerate(others))
        return self.node(own, "objects", name), tuple(further)

    def frame(self, frame: dict[str, Any], *path: str | int, envelope: str = DEFAULT_ENVELOPE) -> FrameTemplate:
        wire, body = next((wire, body) for wire, body in frame.items() if wire not in (*FRAME_KEYS, WHOSE))
        name = frame.get(ENVELOPE, envelope)
        also = [self.frame(one, *path, ALSO, index, envelope=name) for index, one in enumerate(frame.get(ALSO, ()))]
        known_by = tuple((one,) if isinstance(one, str) else tuple(one) for one in frame.get(KNOWN_BY, ()))
        return FrameTemplate(
            wire, self.node(body, *path, wire), name, path, frame.get(WRITE_ONLY, ""), frame.get(READ_ONLY, ""),
            known_by if KNOWN_BY in frame else None, tuple(also))

    def input_row(self, message: str, spelled: InputShape) -> InputTemplate:
        at: NodePath = ("inputs", message)
        is_list = isinstance(spelled.given, list)
        given, fixed = self.node({} if is_list else spelled.given, *at, "given"), self.node(spelled.fixed, *at, "fixed")
        assert isinstance(given, Object)
        assert isinstance(fixed, Object)
        return InputTemplate(
            spelled.command, given, at, self.node(spelled.wire, *at, "wire") if spelled.wire is not None else None,
            tuple(spelled.given) if is_list else (), fixed, tuple(spelled.beside),
            tuple(self.node(other.wire, *at, ALSO, index, "wire") for index, other in enumerate(spelled.also)),
        )
