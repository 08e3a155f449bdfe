"""The language of faults.yaml: a change says how one step of a reference server goes wrong.

A change names a step (a method of a part of the server) and says what goes wrong there: with what it returns, with what
it is given (`argument`), or with the step itself (`skip`, `answer`, `refuse`, `rescue`, `instead`, `first`,
`then`, `leaves`). `it` is the value that is changed; if the step returns a stream, it is each event of the stream.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict

from conformance.faults.steps import NoSuchStep, names_of, part_with, parts_of
from conformance.faults.value_expressions import FUNCTIONS, FUNCTIONS_WITH, IS, TESTS, references
from conformance.kit.documents import nearest

STEP = re.compile(r"(?:(?P<part>\w+)\.)?(?P<name>\w+)(?:\((?P<given>[^)]*)\))?")
CALLS = ("skip", "answer", "refuse", "rescue", "instead", "first", "then", "leaves")
"""What can go wrong with the step itself."""
BEFORE = ("skip", "answer", "instead", "first")
"""Those of them that are decided before the step has a result."""
EDITS = ("becomes", "set", "remove", "keep", "rename", "change", "drop", "repeat", "insert")
"""What can go wrong with a value."""
Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: given.split() if isinstance(given, str) else given)]
Condition = dict[str, Any]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Insertion(_Entry):
    """Items that come before or after each item for which a condition holds."""

    items: list[Any]
    before: Condition | None = None
    after: Condition | None = None


class Change(_Entry):
    """One step of a server that goes wrong."""

    at: str
    when: Condition = {}
    argument: str | None = None
    becomes: Any = None
    set: dict[str, Any] = {}
    remove: Names = ()
    keep: Names = ()
    rename: dict[str, str] = {}
    change: dict[str, Any] = {}
    drop: Condition | None = None
    repeat: Condition | None = None
    insert: Insertion | None = None
    skip: Literal[True] | None = None
    answer: Any = None
    refuse: list[Any] | None = None
    rescue: Any = None
    instead: Annotated[list[Any], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)] = []
    first: list[Any] = []
    then: list[Any] = []
    leaves: dict[str, Any] = {}

    @property
    def part(self) -> str | None:
        """The name of the part that has the step, if the change says it."""
        match = STEP.fullmatch(self.at)
        return match["part"] if match else None

    @property
    def step(self) -> str:
        match = STEP.fullmatch(self.at)
        return match["name"] if match else self.at

    @property
    def given(self) -> list[Any]:
        """What the first arguments of the step must be; `*` stands for anything."""
        match = STEP.fullmatch(self.at)
        texts = (match["given"] or "").split(",") if match else []
        return [text.strip() if text.strip() == "*" else yaml.safe_load(text) for text in texts if text.strip()]


# -- checking ----------------------------------------------------------------------------------------------------------


def part_named(server: Any, change: Change) -> Any:
    """The part of a server that has the step of a change."""
    return parts_of(server)[change.part] if change.part else part_with(server, change.step)


def problems(change: Change, server: Any) -> Iterator[str]:
    """What is wrong with a change of this server, in words; a step that exists and names that are known are right."""
    if STEP.fullmatch(change.at) is None:
        yield f"at: {change.at!r} is no step; write `step`, `step(first, *, third)` or `player.step`"
        return
    if change.part and change.part not in parts_of(server):
        yield f"at: the server has no part {change.part!r}; it has: {', '.join(parts_of(server))}"
        return
    try:
        part = part_named(server, change)
    except NoSuchStep as error:
        yield f"at: {error}; {nearest(change.step, public(server))}"
        return
    if change.step not in names_of(part):
        yield f"at: {change.part} has no step {change.step!r}; {nearest(change.step, names_of(part))}"
        return
    yield from _contradictions(change)
    if callable(getattr(part, change.step)):
        yield from _unknown_names(change, server, list(inspect.signature(getattr(part, change.step)).parameters))
    elif change.model_fields_set != {"at", "becomes"}:
        yield f"at: {change.step} is a setting; a setting can only have `becomes`"


def _contradictions(change: Change) -> Iterator[str]:
    calls, edits = ([name for name in names if name in change.model_fields_set] for names in (CALLS, EDITS))
    if not calls and not edits:
        yield f"nothing goes wrong at {change.at}; say one of: {', '.join((*EDITS, *CALLS))}"
    if change.argument is not None and calls:
        yield f"argument: {calls[0]} is about the step, not about one of its arguments; say it in another change"
    looks_at_it = any(path.partition(".")[0] == "it" for path in change.when)
    if before := [name for name in calls if name in BEFORE and looks_at_it]:
        yield f"when: there is no `it` yet where {before[0]} decides; name an argument"


def _unknown_names(change: Change, server: Any, arguments: list[str]) -> Iterator[str]:
    if change.argument is not None and change.argument not in arguments:
        yield f"argument: {change.step} has no argument {change.argument!r}; {nearest(change.argument, arguments)}"
    known = [*arguments, "it", "server", "fresh", "refusal"]
    used = [path.partition(".")[0] for path in (*change.when, *change.leaves)]
    used += [name for field in change.model_fields_set for name in references(_plain(getattr(change, field)))]
    yield from (f"there is no {name!r} at {change.step}; {nearest(name, known)}" for name in used if name not in known)
    if len(change.given) > len(arguments):
        yield f"at: {change.step} has only {len(arguments)} arguments"
    for function in change.change.values():
        name = function if isinstance(function, str) else next(iter(function or [""]))
        table: Mapping[str, Any] = FUNCTIONS if isinstance(function, str) else FUNCTIONS_WITH
        if name not in table:
            yield f"change: there is no function {name!r} here; {nearest(name, table)}"
    for name in [*change.instead[:1], *change.first[:1], *change.then[:1]]:
        if name not in public(server):
            yield f"no part has {name!r}; {nearest(name, public(server))}"
    conditions = (
        change.when,
        change.drop,
        change.repeat,
        change.insert and (change.insert.before or change.insert.after),
    )
    for wanted in [wanted for condition in conditions for wanted in (condition or {}).values()]:
        yield from _unknown_tests(wanted)


def _unknown_tests(wanted: Any) -> Iterator[str]:
    """A condition of one member is a test, unless its name is like that of none."""
    if not isinstance(wanted, dict) or len(wanted) != 1:
        return
    ((name, argument),) = wanted.items()
    if name == "not":
        yield from _unknown_tests(argument)
    elif name == "is" and argument not in IS:
        yield f"is: there is no {argument!r}; {nearest(str(argument), IS)}"
    elif name not in TESTS and get_close_matches(name, TESTS, cutoff=0.75):
        yield f"there is no test {name!r}; {nearest(name, TESTS)}"


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value


def public(server: Any) -> list[str]:
    """The steps and settings of a server that a change may name."""
    return [name for part in parts_of(server).values() for name in names_of(part)]
