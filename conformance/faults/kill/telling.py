"""The matrix told: on the console, as Markdown, and as JSON."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from conformance.faults.kill.flaw import FAMILIES, Expectation
from conformance.faults.kill.hunt import Catch
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


def tell(console: Console, matrices: Iterable[Matrix]) -> None:
    """Figures, survivors and complaints."""
    matrices = list(matrices)
    table = Table(*HEAD, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for matrix in matrices:
        table.add_row(*summary(matrix))
    console.print(table)
    for matrix in matrices:
        _tell_survivors(console, matrix)
    for matrix in matrices:
        for complaint in matrix.complaints():
            _line(console, f"{matrix.plan.dialect}: {complaint}")


def _tell_survivors(console: Console, matrix: Matrix) -> None:
    reasons = read_survivors(matrix.plan.dialect)
    for catch in matrix.survivors:
        _line(console, f"{matrix.plan.dialect}: survives: {catch.name} ({seen(catch)})")
        if why := reasons.why(catch.name):
            _line(console, f"    {why}")


def tell_each(console: Console, matrices: Iterable[Matrix]) -> None:
    """Every flaw that was tried with what came of it: for looking at a few."""
    for matrix in matrices:
        for flaw in matrix.plan.chosen:
            _line(console, f"{flaw.expectation:9} {flaw.name}")
            _line(console, f"          {flaw.why}")
            if catch := matrix.catches.get(flaw.name):
                _line(console, f"          {told(catch)}")


def tell_plans(console: Console, plans: Iterable[Plan]) -> None:
    """The flaws there are, without what comes of them."""
    for plan in plans:
        for flaw in plan.chosen:
            _line(console, f"{plan.dialect} {flaw.expectation:9} {flaw.name} — {flaw.why}")
        for place in plan.unheld:
            _line(console, f"{plan.dialect} no schema holds {place}")


def told(catch: Catch) -> str:
    """What came of a flaw, in one line."""
    return f"killed by {catch.killer}: {catch.remark}" if catch.is_killed else f"survives ({seen(catch)})"


def seen(catch: Catch) -> str:
    """How hard it was tried."""
    words = f"{catch.tried} cases, struck {catch.strikes} times"
    return words + (f", {len(catch.untestable)} could not be put" if catch.untestable else "")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


# -- files -------------------------------------------------------------------------------------------------------------


def write(folder: Path, matrices: Iterable[Matrix]) -> None:
    """kill.md for all, and kill-<dialect>.json for each."""
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
            | _outcome(matrix.catches.get(flaw.name))
            for flaw in matrix.plan.chosen
        ],
        "by_hand": [{"name": catch.name} | _outcome(catch) for catch in matrix.by_hand],
        "kills": matrix.kills,
        "survivors": [catch.name for catch in matrix.survivors],
        "false_alarms": [{"flaw": catch.name, "remark": catch.remark} for catch in matrix.alarms],
        "held_to_no_schema": matrix.plan.unheld,
        "complaints": matrix.complaints(),
    }


def _outcome(catch: Catch | None) -> dict[str, Any]:
    if catch is None:
        return {}
    about = {"killed_by": catch.killer, "requirements": catch.requirements, "cases": catch.tried}
    return about | {"untestable": catch.untestable, "struck": catch.strikes, "remark": catch.remark}
