"""The shape of a table file, as pydantic models, and the parsed draft of a table."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from gateway.json_values import JsonObject, JsonValue
from gateway.yaml_positions import NodePath, Position, Problem, YamlDocument, suggest, validation_problems

from .expressions import Node, Object, parse_expression

ENVELOPE, WRITE_ONLY, READ_ONLY, KNOWN_BY = "envelope", "write-only", "read-only", "known_by"
ALSO, WHOSE = "also", "of"
FRAME_KEYS = (ENVELOPE, WRITE_ONLY, READ_ONLY, KNOWN_BY, ALSO)
"""What a frame may have beside its wire name: its envelope; why it is not read; whose it is, if it is not written; the
members that tell it from other frames of its name; and further spellings of it that are read, with a note whose."""


def _one_wire_name(frame: JsonObject) -> JsonObject:
    wires = [key for key in frame if key not in FRAME_KEYS]
    if len(wires) != 1:
        raise ValueError(f"a frame has one wire name (and may have {', '.join(FRAME_KEYS)}), not {len(wires)}")
    for key, what in ((ENVELOPE, "the name of an envelope"), (WRITE_ONLY, "a sentence: why the frame is not read"),
                      (READ_ONLY, "a sentence: whose frame it is, and why it is not written")):
        if not isinstance(frame.get(key, ""), str):
            raise ValueError(f"'{key}' is {what}")
    if WRITE_ONLY in frame and READ_ONLY in frame:
        raise ValueError(f"a frame is '{WRITE_ONLY}' or '{READ_ONLY}', not both")
    known_by = frame.get(KNOWN_BY, [])
    if not (isinstance(known_by, list) and all(map(_is_member_or_choice, known_by))):
        raise ValueError(f"'{KNOWN_BY}' is a list of members of the body, or of lists of them: any one of these")
    _further_spellings(frame.get(ALSO, []))
    return frame


def _is_member_or_choice(path: object) -> bool:
    return isinstance(path, str) or (
        isinstance(path, list) and path != [] and all(isinstance(one, str) for one in path))


def _further_spellings(also: object) -> None:
    if not isinstance(also, list) or not all(isinstance(one, dict) for one in also):
        raise ValueError(f"'{ALSO}' is a list of frames")
    for one in also:
        if not isinstance(one.get(WHOSE), str) or len(one) != 2:
            raise ValueError(f"a frame of '{ALSO}' has one wire name, and '{WHOSE}': a note whose spelling it is")


def _part(value: object) -> Any:
    """A part is a block, or a list of a block and further spellings of it that are read; `[]` for none."""
    if isinstance(value, list) and not all(isinstance(one, dict) and {*one} == {ALSO, WHOSE} for one in value[1:]):
        raise ValueError(f"a further spelling of a part has '{ALSO}', a block, and '{WHOSE}': a note whose it is")
    return value


def _word(value: JsonValue) -> object:
    if isinstance(value, dict | list):
        raise ValueError("a word maps to a word")
    return value


def _listed(value: object) -> Any:
    return value if isinstance(value, list) else [value]


def _mount(value: str) -> str:
    if value != "" and (not value.startswith("/") or value.endswith("/") or "{" in value):
        raise ValueError("a mount looks like '/nova': it begins with '/', and does not end with one")
    return value


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Word = Annotated[Any, AfterValidator(_word)]
FrameShape = Annotated[dict[str, Any], AfterValidator(_one_wire_name)]


class ForeignWord(_StrictModel):
    """A word that only other servers say: the member that it is read as, and a note whose it is."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)
    member: str = Field(alias="as")
    whose: str = Field(alias="of")


class OtherSpelling(_StrictModel):
    """A further spelling of a message or a body, which is read and not written, with a note whose it is."""

    wire: JsonValue
    of: str


class InputShape(_StrictModel):
    """How a client message becomes a command, and the command a client message.

    `wire` is the message as it is sent, with the fields of the command as its names. `given` are the fields that the
    session's code adds, `fixed` those that are always the same; `beside` are names on the wire that are no fields.
    """

    command: str
    wire: JsonValue = None
    given: dict[str, Any] | list[str] = {}
    fixed: dict[str, Any] = {}
    beside: list[str] = []
    also: list[OtherSpelling] = []

    @model_validator(mode="after")
    def _one_form(self) -> "InputShape":
        if isinstance(self.given, dict) and self.given and self.wire is not None:
            raise ValueError("beside 'wire', 'given' is a list of the fields that the session's code adds")
        return self


class RouteShape(_StrictModel):
    """What one request of a plain dialect does, and how it is answered."""

    session: Literal["create", "list", "get", "delete"] | None = None
    input: Annotated[list[str], BeforeValidator(_listed)] = []
    body: str | None = None
    query: str | None = None
    stream: Literal["turn", "session"] | None = None
    object: str | None = None
    ping: str | None = None
    status: int | None = Field(default=None, ge=200, le=299)
    public: bool = False


class ErrorShape(_StrictModel):
    """The body of an error response; without a status, the fault's own."""

    status: int | None = Field(default=None, ge=100, le=599)
    body: Any


class TableShape(_StrictModel):
    """The sections of a table."""

    dialect: str
    spec: str
    transport: Literal["sse", "websocket", "rest+sse"] | None = None
    mount: Annotated[str, AfterValidator(_mount)] | None = None
    routes: dict[str, Annotated[list[RouteShape], BeforeValidator(_listed)]] = {}
    enums: dict[str, dict[str, Word]] = {}
    meanings: dict[str, dict[str, str | ForeignWord]] = {}
    reads: dict[str, dict[str, Word]] = {}
    types: dict[str, str | dict[str, str]] = {}
    names: list[str] = []
    envelopes: dict[str, JsonObject] = {}
    unread: list[str] = []
    parts: dict[str, Annotated[Any, AfterValidator(_part)]] = {}
    frames: dict[str, list[FrameShape]] = {}
    events: dict[str, list[str]] = {}
    inputs: dict[str, InputShape] = {}
    objects: dict[str, Any] = {}
    errors: dict[str, ErrorShape] = {}
    support: dict[str, str] = {}
    client_support: dict[str, str] = {}
    notes: dict[str, str] = {}


SECTIONS = tuple(TableShape.model_fields)
# Placeholders for entries of the wrong shape, so that the rest of the table can still be checked.
_STAND_INS: JsonObject = {
    "enums": {"*": ""}, "meanings": {}, "reads": {"*": ""}, "types": "any", "envelopes": {}, "frames": [], "events": [],
    "inputs": {"command": "interrupt"},
    "errors": {"body": None}, "routes": [], "support": "full", "client_support": "full", "notes": "",
    "dialect": "?", "spec": "?",
}


class ShapedTable:
    """A table of the right shape; `broken` names the sections that were left out."""

    def __init__(self, table: TableShape, broken: set[str], problems: list[Problem]) -> None:
        self.table = table
        self.broken = broken
        self.problems = problems


def shape_table(marked: YamlDocument) -> ShapedTable:
    if not isinstance(marked.value, dict):
        problem = Problem(marked.position(()), "a table is a mapping of sections", f"they are {', '.join(SECTIONS)}")
        return ShapedTable(_with_stand_ins({}, ())[0], set(SECTIONS), [] if marked.problems else [problem])
    try:
        return ShapedTable(TableShape.model_validate(marked.value), set(), [])
    except ValidationError as error:
        table, broken = _with_stand_ins(marked.value, (found["loc"] for found in error.errors()))
        return ShapedTable(table, broken, list(_problems(error, marked)))


def _problems(error: ValidationError, marked: YamlDocument) -> Iterator[Problem]:
    for found, problem in zip(error.errors(), validation_problems(error, marked), strict=True):
        where, *rest = found["loc"]
        word = str(found["loc"][-1])
        if found["type"] == "extra_forbidden":
            known = SECTIONS if not rest else _keys_of(str(where))
            what = "section" if not rest else "key"
            yield replace(problem, message=f"there is no {what} '{word}'", hint=suggest(word, known))
        elif word == "[key]":
            place = marked.position(tuple(found["loc"][:-1]), key=True)
            yield Problem(place, f"the key {found['loc'][-2]!r} is not a word", "put it in quotes")
        elif found["type"] == "missing" and not rest:
            yield replace(problem, message=f"the section '{word}' is missing")
        else:
            yield replace(problem, message=problem.message.replace("dictionary", "mapping"))


def _keys_of(section: str) -> Iterable[str]:
    shapes: dict[str, type[BaseModel]] = {"inputs": InputShape, "errors": ErrorShape, "routes": RouteShape}
    return shapes[section].model_fields if section in shapes else ()


def _with_stand_ins(value: dict[str, Any], places: Iterable[tuple[Any, ...]]) -> tuple[TableShape, set[str]]:
    """The table with placeholders for its invalid entries, and the sections that were invalid as a whole."""
    mended: dict[str, Any] = {key: dict(item) if isinstance(item, dict) else item for key, item in value.items()}
    broken: set[str] = set()
    for section, *rest in places:
        if rest and isinstance(mended.get(section), dict):
            mended[section].pop(rest[0], None)
            if isinstance(rest[0], str):
                mended[section][rest[0]] = _STAND_INS.get(section)
        else:
            mended.pop(section, None)
            broken.add(section)
    for section in ("dialect", "spec"):
        mended.setdefault(section, _STAND_INS[section])
    return TableShape.model_validate(mended), broken


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
    table = shaped.table

    def parsed(value: object, *path: str | int) -> Node:
        return parse_expression(value, path, findings.add_message)

    made = ParsedTable(table, shaped.broken)
    made.envelopes = {name: parsed(body, "envelopes", name) for name, body in table.envelopes.items()}
    for kind, body in table.parts.items():
        blocks = body if isinstance(body, list) else [body]
        first = (0,) if blocks is body else ()
        made.parts[kind] = parsed(blocks[0], "parts", kind, *first) if blocks else None
        made.further_parts[kind] = [
            parsed(one[ALSO], "parts", kind, index, ALSO) for index, one in enumerate(blocks[1:], 1)]
    for name, body in table.objects.items():
        made.objects[name], made.other_objects[name] = _object_row(name, body, parsed, findings)

    def template(frame: dict[str, Any], *path: str | int, envelope: str = DEFAULT_ENVELOPE) -> FrameTemplate:
        wire, body = next((wire, body) for wire, body in frame.items() if wire not in (*FRAME_KEYS, WHOSE))
        name = frame.get(ENVELOPE, envelope)
        also = [template(one, *path, ALSO, index, envelope=name) for index, one in enumerate(frame.get(ALSO, ()))]
        known_by = tuple((one,) if isinstance(one, str) else tuple(one) for one in frame.get(KNOWN_BY, ()))
        return FrameTemplate(
            wire, parsed(body, *path, wire), name, path, frame.get(WRITE_ONLY, ""), frame.get(READ_ONLY, ""),
            known_by if KNOWN_BY in frame else None, tuple(also))

    for cue, frames in table.frames.items():
        made.frames[cue] = [template(frame, "frames", cue, index) for index, frame in enumerate(frames)]
    for message, spelled in table.inputs.items():
        at: NodePath = ("inputs", message)
        is_list = isinstance(spelled.given, list)
        given, fixed = parsed({} if is_list else spelled.given, *at, "given"), parsed(spelled.fixed, *at, "fixed")
        assert isinstance(given, Object)
        assert isinstance(fixed, Object)
        made.inputs[message] = InputTemplate(
            spelled.command, given, at, parsed(spelled.wire, *at, "wire") if spelled.wire is not None else None,
            tuple(spelled.given) if is_list else (), fixed, tuple(spelled.beside),
            tuple(parsed(other.wire, *at, ALSO, index, "wire") for index, other in enumerate(spelled.also)),
        )
    for code, refusal in table.errors.items():
        made.errors[code] = ErrorTemplate(refusal.status, parsed(refusal.body, "errors", code, "body"))
    return made


_OTHER_SPELLINGS = TypeAdapter(list[OtherSpelling])


def _object_row(
    name: str, body: object, parsed: Callable[..., Node], findings: ProblemCollector
) -> tuple[Node, tuple[Node, ...]]:
    """The template of an object, and its further spellings."""
    if not isinstance(body, dict) or ALSO not in body:
        return parsed(body, "objects", name), ()
    own = {key: value for key, value in body.items() if key != ALSO}
    try:
        others = _OTHER_SPELLINGS.validate_python(body[ALSO])
    except ValidationError:
        findings.add(("objects", name, ALSO), f"'{ALSO}' is a list of spellings, each with 'wire' and '{WHOSE}'")
        others = []
    further = (parsed(other.wire, "objects", name, ALSO, index, "wire") for index, other in enumerate(others))
    return parsed(own, "objects", name), tuple(further)
