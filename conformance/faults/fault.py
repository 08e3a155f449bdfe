"""Faults: ways in which a server can be wrong, read from conformance/faults/<dialect>/faults.yaml.

A dialect with many faults has further files beside it, one for each group: agents_faults.yaml.

Each row has an id, the requirements that must fail, the cases that must notice it, and either `wrong`, a sentence, with
`mutate`, what goes wrong in which step of the reference server, or `program`, a class in the dialect's programs.py.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

import conformance.faults
from conformance.faults.compiler import Mutation, Tally
from conformance.faults.mutation import Change, Names, problems
from conformance.faults.steps import Variant, variant
from conformance.kit.documents import DocumentError, line_of, nearest, read_document
from conformance.kit.suite import load_suite

FILE = "faults.yaml"
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
Changes = Annotated[tuple[Change, ...], BeforeValidator(lambda given: [given] if isinstance(given, dict) else given)]


@dataclass(frozen=True)
class Fault:
    """One wrong server, and who must notice."""

    name: str
    sentence: str
    requirements: tuple[str, ...]
    cases: tuple[str, ...]
    server: Variant
    changes: tuple[Change, ...] = ()
    """What goes wrong, unless the fault is a program."""
    tally: Tally = field(default_factory=Tally, compare=False)

    @property
    def unapplied(self) -> list[str]:
        """The changes that have made no difference since the tally was cleared, and those that could not be made."""
        unseen = [change.at for place, change in enumerate(self.changes) if place not in self.tally.seen]
        return unseen + self.tally.troubles


class Row(BaseModel):
    """A row of faults.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    requirements: Names
    cases: Names
    wrong: str = ""
    mutate: Changes = ()
    program: str | None = None


class FaultTable(BaseModel):
    """A file of faults."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    faults: tuple[Row, ...]


@cache
def load_faults(dialect: str) -> Mapping[str, Fault]:
    """The faults of a dialect by their ids, in the order they are written; DocumentError names all that is wrong."""
    folders = [Path(folder) / dialect for folder in conformance.faults.__path__]
    home = next((folder for folder in folders if (folder / FILE).is_file()), folders[0])
    return read_faults(home / FILE, dialect, *sorted(home.glob(f"*_{FILE}")))


def read_faults(path: Path, dialect: str, *further: Path) -> Mapping[str, Fault]:
    """The faults in these files that are faults of this dialect's reference server."""
    reference = import_module(f"conformance.faults.{dialect}.server")
    programs, tables = classes(dialect), {place: read_document(place, FaultTable) for place in (path, *further)}
    used = {row.program for table in tables.values() for row in table.faults}
    left = [f"no row has `program: {name}`, which is in {programs[name].__module__}" for name in programs.keys() - used]
    rows: dict[str, Row] = {}
    for place, table in tables.items():
        found = list(_mistakes(table, dialect, rows))
        if found or left:
            text = place.read_text(encoding="utf-8")
            words = [f"{table.faults[row].id}: {problem}" for row, _, problem in found]
            raise DocumentError(place, words + left, [line_of(text, ("faults", row, *at)) for row, at, _ in found])
        rows |= {row.id: row for row in table.faults}
    return {name: _fault(row, reference, programs) for name, row in rows.items()}


def _mistakes(
    table: FaultTable, dialect: str, former: Collection[str]
) -> Iterator[tuple[int, tuple[str | int, ...], str]]:
    """What is wrong with the rows of a file: the row, where in it, and words; `former` are ids of other files."""
    ids = [row.id for row in table.faults]
    for place, row in enumerate(table.faults):
        yield from ((place, at, words) for at, words in _problems(row, dialect))
        if row.id in ids[:place] or row.id in former:
            yield place, ("id",), "this id was used before"


def classes(dialect: str) -> dict[str, type[Any]]:
    """The programs of a dialect: the public classes of its programs.py, which a dialect of rows need not have."""
    name = f"conformance.faults.{dialect}.programs"
    own = vars(import_module(name)).values() if find_spec(name) else ()
    kinds = (item for item in own if isinstance(item, type) and item.__module__ == name)
    return {kind.__name__: kind for kind in kinds if not kind.__name__.startswith("_")}


def _fault(row: Row, reference: ModuleType, programs: Mapping[str, type[Any]]) -> Fault:
    if row.program is not None:
        program = programs[row.program]
        server = variant(reference.SERVER, program)
        return Fault(row.id, " ".join((program.__doc__ or "").split()), row.requirements, row.cases, server)
    tally = Tally()
    server = Variant(row.id, reference.SERVER, (Mutation(row.mutate, reference.REFUSAL, tally),))
    return Fault(row.id, " ".join(row.wrong.split()), row.requirements, row.cases, server, row.mutate, tally)


@cache
def _reference(dialect: str) -> Any:
    """A correct server, to look at its steps."""
    return import_module(f"conformance.faults.{dialect}.server").SERVER()


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def _problems(row: Row, dialect: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong with a row, and where in the row."""
    if not ID.fullmatch(row.id):
        yield ("id",), "an id is small letters and digits with hyphens, as `two-starts`"
    suite = load_suite(dialect)
    known = {"requirements": suite.catalogue.ids, "cases": {case.name for case in suite.cases}}
    for kind, names in known.items():
        given = getattr(row, kind)
        unknown = [f"{kind}: there is no {name!r}; {nearest(name, names)}" for name in given if name not in names]
        yield from (((kind,), problem) for problem in (unknown if given else [f"{kind}: name at least one"]))
    if (row.program is None) == (not row.mutate):
        yield (), "say `mutate` or `program`, and not both"
    elif row.program is not None:
        programs = classes(dialect)
        if row.program not in programs:
            yield ("program",), f"programs.py has no class {row.program!r}; {nearest(row.program, programs)}"
        elif row.program != _class_name(row.id):
            yield ("program",), f"the class has the name of the id: {_class_name(row.id)}"
        if row.wrong:
            yield ("wrong",), "wrong: the docstring of the program says it"
    else:
        if not row.wrong.strip().endswith("."):
            yield ("wrong",), "wrong: say in a sentence what is wrong"
        server = _reference(dialect)
        for number, change in enumerate(row.mutate):
            yield from ((("mutate", number), f"mutate: {problem}") for problem in problems(change, server))
