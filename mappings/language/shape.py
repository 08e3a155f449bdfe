"""What a table file must look like, before anybody asks what it means."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from gateway.marks import Marked, Problem, nearest, shape_problems

ENVELOPE = "envelope"


def _one_wire_name(frame: dict[str, Any]) -> dict[str, Any]:
    wires = [key for key in frame if key != ENVELOPE]
    if len(wires) != 1:
        raise ValueError(f"a frame has one wire name (and may have 'envelope'), not {len(wires)}")
    if not isinstance(frame.get(ENVELOPE, ""), str):
        raise ValueError("'envelope' is the name of an envelope")
    return frame


def _word(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise ValueError("a word maps to a word")
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Word = Annotated[Any, AfterValidator(_word)]
FrameShape = Annotated[dict[str, Any], AfterValidator(_one_wire_name)]


class InputShape(_Strict):
    """How a client message becomes a command."""

    command: str
    given: dict[str, Any] = {}


class ErrorShape(_Strict):
    """How a refusal looks; without a status, the fault's own."""

    status: int | None = Field(default=None, ge=100, le=599)
    body: Any


class TableShape(_Strict):
    """The sections of a table."""

    dialect: str
    spec: str
    enums: dict[str, dict[str, Word]] = {}
    reads: dict[str, dict[str, Word]] = {}
    envelopes: dict[str, dict[str, Any]] = {}
    parts: dict[str, Any] = {}
    frames: dict[str, list[FrameShape]] = {}
    inputs: dict[str, InputShape] = {}
    objects: dict[str, Any] = {}
    errors: dict[str, ErrorShape] = {}
    support: dict[str, str] = {}
    heard: dict[str, str] = {}
    notes: dict[str, str] = {}


SECTIONS = tuple(TableShape.model_fields)
# What stands in for an entry of the wrong shape, so that the rest of the table can still be checked.
_STAND_INS: dict[str, Any] = {
    "enums": {"*": ""}, "reads": {"*": ""}, "envelopes": {}, "frames": [], "inputs": {"command": "interrupt"},
    "errors": {"body": None}, "support": "full", "heard": "full", "notes": "", "dialect": "?", "spec": "?",
}


class Shaped:
    """A table of the right shape; `broken` names the sections that had to be left out to get there."""

    def __init__(self, table: TableShape, broken: set[str], problems: list[Problem]) -> None:
        self.table = table
        self.broken = broken
        self.problems = problems


def shape(marked: Marked) -> Shaped:
    if not isinstance(marked.value, dict):
        problem = Problem(marked.place(()), "a table is a mapping of sections", f"they are {', '.join(SECTIONS)}")
        return Shaped(_mended({}, ())[0], set(SECTIONS), [] if marked.problems else [problem])
    try:
        return Shaped(TableShape.model_validate(marked.value), set(), [])
    except ValidationError as error:
        table, broken = _mended(marked.value, (found["loc"] for found in error.errors()))
        return Shaped(table, broken, list(_problems(error, marked)))


def _problems(error: ValidationError, marked: Marked) -> Iterator[Problem]:
    for found, problem in zip(error.errors(), shape_problems(error, marked), strict=True):
        where, *rest = found["loc"]
        word = str(found["loc"][-1])
        if found["type"] == "extra_forbidden":
            known = SECTIONS if not rest else _keys_of(str(where))
            what = "section" if not rest else "key"
            yield replace(problem, message=f"there is no {what} '{word}'", hint=nearest(word, known))
        elif word == "[key]":
            place = marked.place(tuple(found["loc"][:-1]), key=True)
            yield Problem(place, f"the key {found['loc'][-2]!r} is not a word", "put it in quotes")
        elif found["type"] == "missing" and not rest:
            yield replace(problem, message=f"the section '{word}' is missing")
        else:
            yield replace(problem, message=problem.message.replace("dictionary", "mapping"))


def _keys_of(section: str) -> Iterable[str]:
    return {"inputs": InputShape.model_fields, "errors": ErrorShape.model_fields}.get(section, ())


def _mended(value: dict[str, Any], places: Iterable[tuple[Any, ...]]) -> tuple[TableShape, set[str]]:
    """The table with stand-ins for its broken entries, and the sections that were broken as a whole."""
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
