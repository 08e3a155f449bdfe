"""Reports of the kill matrix: on the console, as Markdown, and as JSON."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from conformance.faults.kill.examiner import FlawResult
from conformance.faults.kill.flaw import FAMILIES, Expectation
from conformance.faults.kill.matrix import HAND, Matrix
from conformance.faults.kill.plan import Plan
from conformance.faults.kill.survivors import read_survivors

COLUMNS = (*FAMILIES, HAND)
HEAD = ("dialect", "breaking", "killed", "share", "surviving", "tolerable", "alarms", "free", "by hand")


def summary(matrix: Matrix) -> tuple[str, ...]:
    """One line of figures per dialect, in the order of HEAD."""
    broken, survivors = matrix.broken, matrix.survivors
    tolerated, free = (matrix.plan.expecting(item) for item in (Expectation.TOLERATED, Expectation.FREE))
    hand = matrix.by_hand
    killed = (len(broken), len(broken) - len(survivors), f"{matrix.share:.1%}", len(survivors))
    others = (len(tolerated), len(matrix.alarms), len(free), f"{sum(item.is_killed for item in hand)}/{len(hand)}")
    return (matrix.plan.dialect, *map(str, killed + others))


def print_matrices(console: Console, matrices: Iterable[Matrix]) -> None:
    """Print figures, survivors and complaints."""
    matrices = list(matrices)
    table = Table(*HEAD, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for matrix in matrices:
        table.add_row(*summary(matrix))
    console.print(table)
    for matrix in matrices:
        _print_survivors(console, matrix)
    for matrix in matrices:
        for complaint in matrix.complaints():
            _line(console, f"{matrix.plan.dialect}: {complaint}")


def _print_survivors(console: Console, matrix: Matrix) -> None:
    reasons = read_survivors(matrix.plan.dialect)
    for result in matrix.survivors:
        _line(console, f"{matrix.plan.dialect}: survives: {result.name} ({effort(result)})")
        if why := reasons.why(result.name):
            _line(console, f"    {why}")


def print_flaws(console: Console, matrices: Iterable[Matrix]) -> None:
    """Print every flaw that was tried, and its result."""
    for matrix in matrices:
        for flaw in matrix.plan.chosen:
            _line(console, f"{flaw.expectation:9} {flaw.name}")
            _line(console, f"          {flaw.why}")
            if result := matrix.results.get(flaw.name):
                _line(console, f"          {described(result)}")


def print_plans(console: Console, plans: Iterable[Plan]) -> None:
    """Print the flaws of plans."""
    for plan in plans:
        for flaw in plan.chosen:
            _line(console, f"{plan.dialect} {flaw.expectation:9} {flaw.name} — {flaw.why}")
        for place in plan.unheld:
            _line(console, f"{plan.dialect} no schema holds {place}")


def described(result: FlawResult) -> str:
    """What came of a flaw, in one line."""
    return f"killed by {result.killer}: {result.remark}" if result.is_killed else f"survives ({effort(result)})"


def effort(result: FlawResult) -> str:
    """How many cases were put, and how often the flaw struck."""
    words = f"{result.tried} cases, struck {result.strikes} times"
    return words + (f", {len(result.untestable)} could not be put" if result.untestable else "")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


# -- files -------------------------------------------------------------------------------------------------------------


def write(folder: Path, matrices: Iterable[Matrix]) -> None:
    """Write kill.md for all dialects, and kill-<dialect>.json for each."""
    matrices = list(matrices)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kill.md").write_text(markdown(matrices), encoding="utf-8")
    for matrix in matrices:
        path = folder / f"kill-{matrix.plan.dialect}.json"
        path.write_bytes(orjson.dumps(as_json(matrix), option=orjson.OPT_INDENT_2))


def markdown(matrices: Iterable[Matrix]) -> str:
    """The figures, and for every dialect the table requirement × family of flaws, and the survivors."""
    matrices = list(matrices)
    parts = ["# The kill matrix", "", *_rows([HEAD, *(summary(matrix) for matrix in matrices)])]
    for matrix in matrices:
        parts += ["", f"## {matrix.plan.dialect}", "", *_rows(_cells(matrix)), "", *_survivor_lines(matrix)]
    return "\n".join(parts) + "\n"


def _cells(matrix: Matrix) -> list[tuple[str, ...]]:
    table = matrix.table()
    rows = [(name, *(str(counted[column] or "") for column in COLUMNS)) for name, counted in table.items()]
    return [("requirement", *COLUMNS), *rows]


def _rows(cells: list[tuple[str, ...]]) -> list[str]:
    head, *rows = [f"| {' | '.join(row)} |" for row in cells]
    return [head, "|" + "---|" * len(cells[0]), *rows]


def _survivor_lines(matrix: Matrix) -> list[str]:
    reasons = read_survivors(matrix.plan.dialect)
    return [f"- `{item.name}` survives: {reasons.why(item.name) or 'unexplained'}" for item in matrix.survivors]


def as_json(matrix: Matrix) -> dict[str, Any]:
    """Everything about one dialect."""
    return {
        "dialect": matrix.plan.dialect,
        "share": round(matrix.share, 4),
        "flaws": [
            {"name": flaw.name, "family": flaw.family, "expected": flaw.expectation, "because": flaw.why}
            | _outcome(matrix.results.get(flaw.name))
            for flaw in matrix.plan.chosen
        ],
        "by_hand": [{"name": result.name} | _outcome(result) for result in matrix.by_hand],
        "kills": matrix.kills,
        "survivors": [result.name for result in matrix.survivors],
        "false_alarms": [{"flaw": result.name, "remark": result.remark} for result in matrix.alarms],
        "held_to_no_schema": matrix.plan.unheld,
        "complaints": matrix.complaints(),
    }


def _outcome(result: FlawResult | None) -> dict[str, Any]:
    if result is None:
        return {}
    about = {"killed_by": result.killer, "requirements": result.requirements, "cases": result.tried}
    return about | {"untestable": result.untestable, "struck": result.strikes, "remark": result.remark}
