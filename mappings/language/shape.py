"""The shape of a table file, as pydantic models: its sections, and what a row of each section may have."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from gateway.json_values import JsonObject, JsonValue
from gateway.yaml_positions import Problem, YamlDocument, suggest, validation_problems

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
