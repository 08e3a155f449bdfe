"""`python -m bench.page found.json …`: write the figures of runs into docs/production.md, between its two marks."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .measure import Figure
from .report import between, number, within

PAGE = Path(__file__).resolve().parent.parent / "docs" / "production.md"
BEGIN, END = "<!-- figures of python -m bench -->", "<!-- end of the figures -->"
USAGE = """\
usage: python -m bench.page FILE [FILE ...]

Writes the figures that `python -m bench --json FILE` found into docs/production.md. Of several files the last one that
has a scenario is taken for it, so that a long scenario may be run by itself.
"""

Report = Mapping[str, Any]
Row = Mapping[str, Any]


def figures_block(reports: Sequence[Report]) -> str:
    """The text between the marks: a summary, then a table for each scenario."""
    by_scenario: dict[str, tuple[Report, list[Row]]] = {}
    for report in reports:
        for scenario in dict.fromkeys(row["scenario"] for row in report["rows"]):
            by_scenario[scenario] = report, [row for row in report["rows"] if row["scenario"] == scenario]
    judged = [row for _, rows in by_scenario.values() for row in rows if row["met"] is not None]
    lines = [f"{sum(row['met'] for row in judged)} of {len(judged)} aims were met. {_machine(reports[-1])}", ""]
    for scenario, (report, rows) in by_scenario.items():
        lines += [f"`python -m bench {'--quick ' if report['effort'] == 'quick' else ''}--only {scenario}`:", ""]
        lines += [*_table(rows), ""]
    return "\n".join(lines)


def _machine(report: Report) -> str:
    about = report["machine"]
    libraries = ", ".join(f"{name} {value}" for name, value in about.items() if name not in ("cores", "system"))
    return f"The machine has {about['cores']} cores ({about['system']}; {libraries})."


def _table(rows: Sequence[Row]) -> Iterator[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row["figures"]))
    yield _line(["", "unit", *columns, "ratio", "aim", ""])
    yield _line(["---"] * (len(columns) + 5))
    for row in rows:
        cells = [within(Figure(**row["figures"][name])) if name in row["figures"] else "–" for name in columns]
        ratio = between(Figure(**row["ratio"])) if row["ratio"] else "–"
        aim = row["aim"]["text"] if row["aim"] else ""
        yield _line([row["name"].replace("|", "\\|"), row["unit"], *cells, ratio, aim, _verdict(row["met"])])


def _verdict(met: bool | None) -> str:
    return {None: "", True: "✓", False: "✗"}[met]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def with_block(page: str, block: str) -> str:
    """The page with another text between its marks; raises `ValueError` if it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines '{BEGIN}' and '{END}'")
    return f"{before}{BEGIN}\n\n{block}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr, end="")
        return 2
    reports = [json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments]
    PAGE.write_text(with_block(PAGE.read_text(encoding="utf-8"), figures_block(reports)), encoding="utf-8")
    rows = sum(len(report["rows"]) for report in reports)
    print(f"{number(rows)} rows of {len(reports)} runs are in {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
