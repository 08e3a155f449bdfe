"""The command line of the kill matrix."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformance.faults.kill import report, workers
from conformance.faults.kill.attribution import attribute, lines, write
from conformance.faults.kill.clean_run import NotClean
from conformance.faults.kill.examiner import AT_ONCE, FOR_KILLING
from conformance.faults.kill.orders import read_orders
from conformance.faults.kill.setups import SETUPS, unexamined_dialects
from conformance.faults.kill.survivors import read_survivors
from conformance.faults.kill.workers import Advance, RunOptions
from conformance.kit.documents import DocumentError

USAGE_ERROR = 2
FAULTS_AT_ONCE = 2
"""How many faults the whole suite is put to at a time."""


def kill(
    dialects: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(SETUPS)}; all if none is named.")] = None,
    flaw: Annotated[list[str] | None, typer.Option(help="Only flaws of this name or glob; may be repeated.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="A fixed sample of so many flaws per dialect.")] = None,
    free: Annotated[bool, typer.Option("--free", help="Also try the flaws that nothing is expected of.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Only list the flaws and what is expected of each.")] = False,
    attribution: Annotated[
        bool,
        typer.Option("--attribution", help="Instead: count the requirements that fail for each fault of faults.yaml."),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="A folder for kill.md and JSON files.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="How many processes share the work.")] = 2,
    at_once: Annotated[int, typer.Option(min=1, help="How many flaws a process examines at once.")] = AT_ONCE,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds a case waits for an answer.")] = FOR_KILLING,
) -> None:
    """Damage a correct server of each dialect in every way its schemas and orders give, one way at a time, and see
    whether the examiners notice.

    Example: python -m conformance.faults.kill aap --out build/kill

    The exit code is 0 if at least 97 % of the flaws that break a MUST are killed, every survivor is explained in
    conformance/<dialect>/survivors.yaml, no explanation is out of date, nothing that is allowed is failed, and every
    MUST kills something; 1 if not; 2 if the run could not begin.

    With --attribution the whole suite is put to each fault of faults.yaml, and nothing is damaged. Spread is how many
    requirements fail for a fault, precision the share of them that the fault's row names; the exit code is 0.
    """
    chosen = tuple(dialects or SETUPS)
    for name in unexamined_dialects() if not dialects else ():
        typer.echo(f"{name} is left out: there is no conformance/faults/{name}/setup.py", err=True)
    if unknown := [name for name in chosen if name not in SETUPS]:
        raise _unusable(f"there is no dialect {unknown[0]!r}; there are: {', '.join(SETUPS)}")
    console = Console()
    try:
        for name in chosen:
            read_orders(name)
            read_survivors(name)
        if list_:
            report.print_plans(console, workers.listed(chosen, flaw or ()))
            return
        if attribution:
            _attribute(console, chosen, sample, timeout, out)
            return
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
    raise typer.Exit(1 if any(matrix.complaints() for matrix in matrices) else 0)


def _attribute(
    console: Console, dialects: Sequence[str], sample: int | None, within: float, out: Path | None
) -> None:
    """Print spread and precision of each dialect, and write what failed for each fault."""
    with _progress(console) as advance:
        runs = (attribute(name, sample, within, FAULTS_AT_ONCE, advance) for name in dialects)
        found = [asyncio.run(run) for run in runs]
    for line in lines(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if out is not None:
        write(out, found)


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
