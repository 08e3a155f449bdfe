"""The runs of `make test` on one commit, kept in a file: so that a later invocation can go on with them."""

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

TITLES = (
    "| run | python | busy processes | other runs beside it | result | tests passed | seconds | CPU |\n"
    + "|---" * 8 + "|"
)


@dataclass(frozen=True)
class Row:
    """One run, as the table tells it."""

    python: str
    busy: int
    beside: int
    is_green: bool
    tests: str
    seconds: float
    cpu: str

    @property
    def result(self) -> str:
        return "green" if self.is_green else "RED"


@dataclass(frozen=True)
class Checkout:
    """What is tested: a commit, and whether the working tree differs from it."""

    commit: str
    is_changed: bool

    @property
    def name(self) -> str:
        return f"{self.commit} with changes" if self.is_changed else self.commit

    @classmethod
    def of(cls, root: Path) -> "Checkout":
        commit, status = (
            subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain"])
        )
        return cls(commit, bool(status))


class KeptRows:
    """The rows of one commit, the earliest first: a line of JSON each, written when its run has ended."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._file = folder / f"rows-{name.replace(' ', '-')}.jsonl"
        self.rows: list[Row] = []

    def read(self) -> None:
        """Go on with the rows of earlier invocations."""
        if self._file.exists():
            self.rows = [Row(**json.loads(line)) for line in self._file.read_text(encoding="utf-8").splitlines()]

    def begin_anew(self) -> None:
        self._file.unlink(missing_ok=True)

    def add(self, rows: Sequence[Row]) -> None:
        self.rows += rows
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(asdict(row))}\n" for row in rows)

    @property
    def is_green(self) -> bool:
        return all(row.is_green for row in self.rows)

    def counts(self) -> Counter[tuple[str, int]]:
        """How many runs there were with each version of Python beside so many busy processes."""
        return Counter((row.python, row.busy) for row in self.rows)

    def table(self) -> str:
        rows = [f"| {number} | {row.python} | {row.busy} | {row.beside} | {row.result} "
                f"| {row.tests} | {row.seconds:.0f} | {row.cpu} |" for number, row in enumerate(self.rows, 1)]
        return "\n".join([f"Runs of {self.name}:", "", TITLES, *rows])
