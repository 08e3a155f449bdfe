"""`dragoman check`: reports all problems of settings and tables, and what the dialects cannot express."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigFile, fail, load_checked_settings, report_errors

if TYPE_CHECKING:
    from gateway.loss_matrix import SupportGrid

WIDTH = 80


def check(
    config: ConfigFile = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="Show which features each dialect cannot express.")] = False,
    pairs: Annotated[bool, typer.Option(
        "--pairs", help="Show what is lost between an agent behind one dialect and a client of another.")] = False,
    explain: Annotated[str | None, typer.Option(
        "--explain", metavar="DIALECT",
        help="Show what goes out in a dialect for each event, what comes back, and what is lost: {dialects}.")] = None,
    event: Annotated[str | None, typer.Argument(
        show_default=False, help="With --explain: only this event, row or cue, for example block.delta.")] = None,
    schema: Annotated[bool, typer.Option(
        "--schema", help="Print the JSON Schema of mapping tables, for editors, and check nothing.")] = False,
) -> None:
    """Read the settings and the tables, and list every mistake with its file, line and column.

    Example: [b]dragoman check --config config.yaml --matrix[/b]

    The exit code is 0 if there are no problems, and 2 otherwise.
    """
    if schema:
        from mappings.language import schema_text

        typer.echo(schema_text(), nl=False)
        return
    if event is not None and explain is None:
        fail(f"'{event}' needs --explain DIALECT before it")
    with report_errors():
        chosen = load_checked_settings(config)
        if explain is not None:
            from .explain import explanation_lines

            for line in explanation_lines(chosen, explain, event):
                typer.echo(line)
            return

        from gateway import app, loss_matrix

        for line in app.describe_components(chosen):
            typer.echo(line)
        for warning in chosen.warnings:
            typer.echo(f"warning: {warning}", err=True)
        if matrix:
            typer.echo()
            grid = loss_matrix.support_grid(chosen)
            _show_grid(grid)
            _explain(grid.rows)
        if pairs:
            typer.echo()
            rows = loss_matrix.pair_losses(chosen)
            _show(rows)
            _explain(rows)


def _show_grid(grid: "SupportGrid") -> None:
    """Print one row per feature and one column per dialect, with a note below for each degraded feature."""
    from textwrap import wrap

    widths = [max(map(len, column)) for column in zip(*grid.rows, strict=True)]
    for row in grid.rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    typer.echo("\n✓ full   ~ degraded, see the note   ✗ lost\n")
    for number, note in enumerate(grid.notes, 1):
        for line in wrap(f"~{number} {note}", WIDTH, subsequent_indent="    "):
            typer.echo(line)


def _explain(rows: Sequence[Sequence[str]]) -> None:
    """Print what the words of the table mean."""
    from mappings.language import FEATURES

    named = {word for row in rows for cell in row for word in cell.split(", ")}
    typer.echo()
    for word, feature in FEATURES.items():
        if word in named:
            typer.echo(f"{word}: {feature.meaning}")


def _show(rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first row is its header; a pipe gets plain text of any width."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    head, *body = rows
    table = Table(*map(escape, head), box=SIMPLE)
    for row in body:
        table.add_row(*map(escape, row))
    console.print(table)
