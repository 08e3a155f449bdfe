"""The command line of the kill matrix."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformance.faults.kill import report, workers
from conformance.faults.kill.attribution import Attribution, lines, read_bounds, write
from conformance.faults.kill.attribution_run import Choice, attribute, attribute_mutants
from conformance.faults.kill.clean_run import NotClean
from conformance.faults.kill.clock import run_jumping
from conformance.faults.kill.examiner import AT_ONCE, FOR_KILLING
from conformance.faults.kill.orders import read_orders
from conformance.faults.kill.setups import SETUPS, unexamined_dialects
from conformance.faults.kill.survivors import read_survivors
from conformance.faults.kill.workers import Advance, RunOptions
from conformance.kit.documents import DocumentError

USAGE_ERROR = 2
MUTANTS_TRIED = 120
"""To how many flaws of a dialect a whole run puts the whole suite."""


DialectNames = Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(SETUPS)}; all if none is named.")]
FlawNames = Annotated[
    list[str] | None, typer.Option("--flaw", "--only", help="Only flaws of this name or glob; may be repeated.")
]
SampleSize = Annotated[int | None, typer.Option(min=1, help="A fixed sample of so many flaws per dialect.")]
WithFree = Annotated[bool, typer.Option("--free", help="Also try the flaws that nothing is expected of.")]
OnlyList = Annotated[bool, typer.Option("--list", help="Only list the flaws and what is expected of each.")]
OnlyAttribution = Annotated[
    bool,
    typer.Option("--attribution", help="Instead: count the requirements that fail for each fault of faults.yaml."),
]
MutantCount = Annotated[
    int, typer.Option(min=0, help="With --attribution: count them for so many flaws, too, or for those of --flaw.")
]
Hold = Annotated[
    bool, typer.Option("--hold", help="With --attribution: the exit code is 1 if the figures exceed their bounds.")
]
OutputFolder = Annotated[Path | None, typer.Option(help="A folder for kill.md and JSON files.")]
ProcessCount = Annotated[int, typer.Option(min=1, help="How many processes share the work.")]
FlawsAtOnce = Annotated[int, typer.Option(min=1, help="How many flaws a process examines at once.")]
CaseTimeout = Annotated[float, typer.Option(min=0.1, help="Seconds a case waits for an answer.")]


def kill(
    dialects: DialectNames = None, flaw: FlawNames = None, sample: SampleSize = None, free: WithFree = False,
    list_: OnlyList = False, attribution: OnlyAttribution = False, mutants: MutantCount = 0, hold: Hold = False,
    out: OutputFolder = None, processes: ProcessCount = 2, at_once: FlawsAtOnce = AT_ONCE,
    timeout: CaseTimeout = FOR_KILLING,
) -> None:
    """Damage a correct server of each dialect in every way its schemas and orders give, one way at a time, and see
    whether the examiners notice.

    Example: python -m conformance.faults.kill aap --out build/kill

    The exit code is 0 if at least 97 % of the flaws that break a MUST are killed, every survivor is explained in
    conformance/<dialect>/survivors.yaml, no explanation is out of date, nothing that is allowed is failed, and every
    MUST kills something; 1 if not; 2 if the run could not begin.

    With --attribution the whole suite is put to each fault of faults.yaml, or to those of --only. Spread is how many
    requirements fail for a fault, precision the share of them that the fault's row names. With --mutants N the same is
    done for N flaws. The bounds of --hold are in conformance/faults/attribution.yaml. A whole run without --attribution
    ends with these figures, and holds their bounds.
    """
    chosen = _chosen_dialects(dialects)
    console = Console()
    try:
        for name in chosen:
            read_orders(name)
            read_survivors(name)
        if list_:
            report.print_plans(console, workers.listed(chosen, flaw or ()))
            return
        if attribution:
            figures = _attributed(console, chosen, Choice(_listed(flaw), sample, timeout), mutants, out)
            raise typer.Exit(1 if hold and _exceeded(console, figures) else 0)
        with _progress(console) as advance:
            options = RunOptions(chosen, tuple(flaw or ()), sample, free, timeout, at_once)
            matrices = workers.run_apart(options, processes, advance)
    except (DocumentError, NotClean) as error:
        raise _unusable(str(error)) from None
    if flaw:
        report.print_flaws(console, matrices)
    report.print_matrices(console, matrices)
    if out is not None:
        report.write(out, matrices)
    is_wrong = any(matrix.complaints() for matrix in matrices)
    if options.is_whole:
        is_wrong |= _exceeded(console, _attributed(console, chosen, Choice(within=timeout), MUTANTS_TRIED, out))
    raise typer.Exit(1 if is_wrong else 0)


def _chosen_dialects(named: Sequence[str] | None) -> tuple[str, ...]:
    """The named dialects, or all that can be examined; those that cannot are reported."""
    for name in unexamined_dialects() if not named else ():
        typer.echo(f"{name} is left out: there is no conformance/faults/{name}/setup.py", err=True)
    chosen = tuple(named or SETUPS)
    if unknown := [name for name in chosen if name not in SETUPS]:
        raise _unusable(f"there is no dialect {unknown[0]!r}; there are: {', '.join(SETUPS)}")
    return chosen


def _listed(names: Sequence[str] | None) -> tuple[str, ...]:
    """The names given, one by one or with commas between them."""
    return tuple(part for name in names or () for part in name.split(","))


def _attributed(
    console: Console, dialects: Sequence[str], choice: Choice, mutants: int, out: Path | None
) -> list[Attribution]:
    """Print spread and precision of each dialect, and write what failed for each flaw."""
    found = []
    with _without_logs(), _progress(console) as advance:
        for name in dialects:
            found.append(run_jumping(attribute(name, choice, advance)))
            if mutants:
                found.append(run_jumping(attribute_mutants(name, replace(choice, sample=mutants), advance)))
    found = [item for item in found if item.effects or not choice.only]
    for line in lines(found, is_detailed=bool(choice.only)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if out is not None:
        write(out, found)
    return found


def _exceeded(console: Console, found: Sequence[Attribution]) -> bool:
    """Print where figures are worse than their bounds; whether any is."""
    complaints = read_bounds().complaints(found)
    for words in complaints:
        console.print(words, markup=False, highlight=False, soft_wrap=True)
    return bool(complaints)


@contextmanager
def _without_logs() -> Iterator[None]:
    """A wrong server logs its own failures, which nobody needs to read."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _progress(console: Console) -> Iterator[Advance]:
    """One bar per dialect."""
    columns = (TextColumn("{task.description:8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bars = {}

        def advance(dialect: str, done: int, more: int) -> None:
            if dialect not in bars:
                bars[dialect] = progress.add_task(dialect, total=0)
            total = (progress.tasks[bars[dialect]].total or 0) + more
            progress.update(bars[dialect], advance=done, total=total)

        yield advance


def _unusable(words: str) -> typer.Exit:
    typer.echo(words, err=True)
    return typer.Exit(USAGE_ERROR)


def main() -> None:
    typer.run(kill)
