"""The report on the console: progress while it runs, findings at the end; plain lines where there is no terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from conformance.kit.reports.comparison import Comparison
from conformance.kit.reports.html_parts import left_behind, unoffered
from conformance.kit.verdict import BLOCKED, COUNTS, LEFT_OUT, CaseResult, Cause, Finding, Outcome, Report, Verdict

STYLES = {
    Outcome.PASSED: "green",
    Outcome.FAILED: "bold red",
    Outcome.NOT_TESTABLE: "yellow",
    Outcome.NOT_APPLICABLE: "dim",
    Outcome.NOT_OFFERED: "dim",
}
COUNT_STYLES = {**{outcome.value: style for outcome, style in STYLES.items()}, BLOCKED: "yellow"}
VERDICT_STYLES = {Verdict.CONFORMS: "bold green", Verdict.FAILS: "bold red", Verdict.INCOMPLETE: "bold yellow"}
CHANGE_STYLES = {"worse": "bold red", "better": "green"}


class Narrator:
    """Prints each case when it ends and, on a terminal, the running case and the time that is left."""

    def __init__(self, console: Console, bar: Progress | None = None, total: int = 0) -> None:
        self._console = console
        self._bar = bar
        self._task = bar.add_task("examining", total=total, asked="") if bar is not None else None
        self._asked: dict[str, str] = {}

    def begun(self, name: str, sentence: str) -> None:
        """A case begins."""
        self._asked[name] = sentence
        self._show()

    def __call__(self, result: CaseResult) -> None:
        """A case has ended."""
        self._asked.pop(result.name, None)
        if self._bar is None or self._task is None:
            self._console.print(f"{result.outcome:<12} {result.name}", markup=False, soft_wrap=True)
            return
        self._bar.update(self._task, advance=1, description=result.name.partition(".")[0])
        self._show()

    def _show(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, asked=next(iter(self._asked.values()), ""))


@contextmanager
def progress(console: Console, total: int) -> Iterator[Narrator]:
    """Show the progress of an examination."""
    if not console.is_terminal:
        yield Narrator(console)
        return
    left = TimeRemainingColumn(elapsed_when_finished=True)
    columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), left, TextColumn("left"))
    asked = TextColumn("{task.fields[asked]}", markup=False, table_column=Column(ratio=1, no_wrap=True))
    with Progress(*columns, asked, console=console, transient=True, expand=True) as bar:
        yield Narrator(console, bar, total)


def conclude(console: Console, report: Report) -> None:
    """Failures, what could not be tested, the counts and the verdict."""
    for cause in report.causes:
        _tell(console, cause.finding)
        _tell_blocked(console, cause)
    for finding in report.of(Outcome.NOT_TESTABLE):
        if not finding.because:
            _tell(console, finding)
    console.print()
    console.print(_counts(report))
    console.print()
    _tell_baseline(console, report)
    for finding in report.readings:
        _line(console, f"reading of {finding.requirement.id}: {'; '.join(finding.readings)}")
    for why, names in unoffered(report).items():
        _line(console, f"not offered: {len(names)} ({', '.join(names)}): {why}")
    if report.left:
        _line(console, left_behind(report))
    if report.left_out:
        _line(console, f"{len(report.left_out)} requirements were {LEFT_OUT}")
    if report.causes:
        _line(console, report.explained)
    tell_verdict(console, report)


def tell_verdict(console: Console, report: Report) -> None:
    """The verdict in one line."""
    taken = f"{report.extent}, requirements {report.requirements or 'unreleased'}"
    line = f"{report.verdict}: {report.title} at {report.url} ({taken})"
    console.print(Text(line, style=VERDICT_STYLES[report.verdict]), soft_wrap=True)


def tell_changes(console: Console, comparison: Comparison) -> None:
    """What lies between two reports."""
    for line in comparison.lines():
        group = line.partition(":")[0]
        console.print(Text(line, style=CHANGE_STYLES.get(group, "")), soft_wrap=True)


def _tell_baseline(console: Console, report: Report) -> None:
    """Print how the report compares with the baseline, if there is one."""
    if report.standing is None:
        return
    for words in report.standing.complaints:
        console.print(Text(words, style="bold red"), soft_wrap=True)
    news = "as the baseline says" if report.exit_code == 0 else "not as the baseline says"
    _line(console, f"{len(report.standing.known)} known: {', '.join(report.standing.known) or 'none'}; {news}")


def _tell(console: Console, finding: Finding) -> None:
    requirement, outcome = finding.requirement, finding.outcome
    console.print()
    heading = Text.assemble((f"{outcome} ", STYLES[outcome]), (requirement.id, "bold"), f" ({requirement.level})")
    console.print(heading)
    _line(console, f"  {requirement.sentence}")
    for result in finding.grave:
        _line(console, f"  in {result.name}")
        if result.outcome is Outcome.FAILED:
            _line(console, f"    expected  {result.expected}")
            _line(console, f"    seen      {result.seen}")
        else:
            _line(console, f"    {result.reason}")


def _tell_blocked(console: Console, cause: Cause) -> None:
    """Print what cannot be judged because of a failure."""
    if not cause.is_asked:
        _line(console, "  (you did not ask for this requirement; it is shown because it blocks others)")
    if cause.blocked:
        names = ", ".join(finding.requirement.id for finding in cause.blocked)
        _line(console, f"  not testable because of it: {len(cause.blocked)} ({names})")


def _line(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def _counts(report: Report) -> Table:
    table = Table("", box=None)
    for count in COUNTS:
        table.add_column(count, header_style=COUNT_STYLES[count], justify="right")
    for rows in (report.by_level(), report.by_section()):
        for name, row in rows.items():
            table.add_row(name, *(str(row[count]) for count in COUNTS))
        table.add_section()
    return table
