"""The rows of mutants.yaml: one mistake in one file each, and the tests that must notice it."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

FILE = Path(__file__).with_name("mutants.yaml")


class Mutant(BaseModel):
    """One mistake: `find` occurs exactly once in `file`, and `replace` takes its place."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    room: str
    file: str
    find: str
    replace: str
    sentence: str
    tests: tuple[str, ...]

    def problem(self, tree: Path) -> str | None:
        """Why the mistake cannot be made in this tree; None if it can."""
        path = tree / self.file
        if not path.is_file():
            return f"there is no file {self.file}"
        count = path.read_text(encoding="utf-8").count(self.find)
        if count != 1:
            return f"`find` occurs {count} times in {self.file}, not once"
        missing = [test for test in self.tests if not (tree / test.partition("::")[0]).exists()]
        return f"there is no test {missing[0]}" if missing else None

    def damaged(self, text: str) -> str:
        return text.replace(self.find, self.replace)


def read_rows(file: Path = FILE, tests: Mapping[str, Sequence[str]] | None = None) -> list[Mutant]:
    """All mutants; `tests` names other tests for some of them, by their ids."""
    rows = TypeAdapter(list[Mutant]).validate_python(yaml.safe_load(file.read_text(encoding="utf-8")))
    others = tests or {}
    return [row.model_copy(update={"tests": tuple(others[row.id])}) if row.id in others else row for row in rows]


def by_turns(rows: Iterable[Mutant]) -> list[Mutant]:
    """A row of each room, then a second row of each room, and so on: a run that is cut short has seen every room."""
    rooms: dict[str, list[Mutant]] = {}
    for row in rows:
        rooms.setdefault(row.room, []).append(row)
    return [row for row in chain.from_iterable(zip_longest(*rooms.values())) if row is not None]
