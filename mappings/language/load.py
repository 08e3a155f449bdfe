"""From a file to a table: read, lay overrides over it, shape, check, compile; all problems are told together."""

from collections.abc import Iterable
from pathlib import Path

from gateway.marks import Problems, read
from gateway.ports import Dialect

from .check import check
from .draft import Findings, draft
from .names import Vocabulary
from .override import lay_over
from .shape import shape
from .table import Table


def builtin_path(dialect: str) -> Path:
    """Where the table of a dialect that comes with the gateway is kept."""
    return Path(__file__).parent.parent / f"{dialect}.yaml"


def builtin_table(dialect: Dialect) -> Table:
    """The table of a dialect as it comes with the gateway, whatever a deployment has changed of it."""
    return load_table(builtin_path(dialect.name), Vocabulary.of(dialect))


def load_table(path: Path | str, vocabulary: Vocabulary, overrides: Iterable[Path | str] = ()) -> Table:
    """Raises `Problems`, naming every mistake of the table and its overrides."""
    marked = read(path)
    for override in overrides:
        marked = lay_over(marked, read(override))
    shaped = shape(marked)
    findings = Findings(marked)
    drafted = draft(shaped, findings)
    if marked.value is not None:
        check(drafted, vocabulary, findings)
    problems = [*marked.problems, *shaped.problems, *findings.problems]
    if problems:
        raise Problems(problems)
    return Table(drafted, vocabulary, marked)
