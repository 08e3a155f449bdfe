"""`dragoman check`: reports problems of settings and tables, what dialects cannot express, and explains tables."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigFile, fail, load_checked_settings, report_errors

if TYPE_CHECKING:
    from gateway.config import Config
    from gateway.loss_matrix import SupportGrid
    from gateway.ports import Dialect, SharedKind
    from mappings.language import ExplainedCue, ExplainedEvent, Explanation

WIDTH = 80
GRID_LEGEND = "✓ full   ~ degraded, see the note   ✗ lost"
NOWHERE = "–"


def check(
    config: ConfigFile = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="Show which features each dialect cannot express.")] = False,
    pairs: Annotated[bool, typer.Option(
        "--pairs", help="Show what is lost between an agent behind one dialect and a client of another.")] = False,
    resources: Annotated[bool, typer.Option(
        "--resources", help="Show where each dialect shows agents, skills, memories and other resources.")] = False,
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
            for line in explanation_lines(chosen, explain, event):
                typer.echo(line)
            return
        if resources:
            for line in markdown_table(resource_rows(chosen)):
                typer.echo(line)
            return
        _report(chosen, matrix=matrix, pairs=pairs)


def _report(config: "Config", *, matrix: bool, pairs: bool) -> None:
    """Print what the settings name and their warnings; and, if wanted, what dialects and pairs of them lose."""
    from gateway import app, loss_matrix

    for line in app.describe_components(config):
        typer.echo(line)
    for warning in config.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if matrix:
        typer.echo()
        grid = loss_matrix.support_grid(config)
        _show_grid(grid)
        typer.echo()
        _show_grid(loss_matrix.agent_grid(config))
        _explain(grid.rows)
    if pairs:
        typer.echo()
        rows = loss_matrix.pair_losses(config)
        _show(rows)
        _explain(rows)


def _show_grid(grid: "SupportGrid") -> None:
    """Print the marks, with a note below for each degraded feature."""
    from textwrap import wrap

    widths = [max(map(len, column)) for column in zip(*grid.rows, strict=True)]
    for row in grid.rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if grid.notes:
        typer.echo(f"\n{GRID_LEGEND}\n")
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


NARROWEST, WIDEST = 72, 140
GAP = "   "
LEGEND = "✓ all of it comes back   ~ a part of it comes back   ✗ nothing comes back"


def explanation_lines(config: "Config", dialect: str, name: str | None) -> Iterator[str]:
    """The page of a dialect, or the part of it about one event, row or cue; raises `NotFound` for a wrong name."""
    from gateway.composition import load_dialect_table

    found, table = load_dialect_table(config, dialect)
    explanation = table.explanation(*found.framings)
    if name is not None:
        explanation = _about(explanation, dialect, name)
    page = _Page(max(NARROWEST, min(get_terminal_size().columns, WIDEST)))
    yield from page.lines(explanation, f"{dialect}, version {table.spec}: goes out", is_whole=name is None)


def _about(explanation: "Explanation", dialect: str, name: str) -> "Explanation":
    from gateway.errors import NotFound
    from gateway.yaml_positions import suggest

    if name not in explanation.names:
        hint = suggest(name, explanation.names)
        raise NotFound(f"{dialect} has no event, row or cue '{name}'" + (f"; {hint}" if hint else ""))
    return explanation.about(name)


class _Page:
    """Two columns of one width."""

    def __init__(self, width: int) -> None:
        self._column = (width - len(GAP)) // 2

    def lines(self, explanation: "Explanation", title: str, *, is_whole: bool) -> Iterator[str]:
        yield from self._beside([title], ["comes back"])
        yield "─" * self._column + GAP + "─" * self._column
        for event in explanation.events:
            yield from self._event(event)
        if explanation.cues:
            if is_whole:
                yield "cues that the dialect's own code raises"
                yield ""
            for row in explanation.cues:
                yield from self._row(row)
        yield LEGEND

    def _event(self, event: "ExplainedEvent") -> Iterator[str]:
        for row in event.rows:
            yield from self._row(row)
        if not event.rows:
            yield event.name
            if event.by_cues:
                yield from self._beside([f"cues: {', '.join(event.by_cues)}"], [event.note] if event.note else [])
            else:
                yield from self._nothing(event.note)
            yield ""

    def _row(self, row: "ExplainedCue") -> Iterator[str]:
        yield row.cue
        if not row.frames:
            yield from self._nothing(row.note)
        for frame in row.frames:
            first, *more = frame.back or ("",)
            yield from self._beside([frame.out], [f"{frame.loss} {first}", *(f"  {line}" for line in more)])
        yield ""

    def _nothing(self, note: str) -> Iterator[str]:
        yield from self._beside(["nothing"], [f"✗ {note}" if note else "✗"])

    def _beside(self, left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
        for one, other in zip_longest(self._wrapped(left, "  "), self._wrapped(right, ""), fillvalue=""):
            yield f"{one:<{self._column}}{GAP}{other}".rstrip()

    def _wrapped(self, texts: Sequence[str], indent: str) -> list[str]:
        """The texts in lines of the column; what a text continues with is indented."""
        return [line for text in texts for line in wrap(
            text, self._column, initial_indent=indent, subsequent_indent=indent + "    ", drop_whitespace=True,
        )]


def resource_rows(config: "Config") -> list[list[str]]:
    """Where each dialect shows each kind of resource: one row per kind, one column per dialect, first a header."""
    from gateway.composition import load_components
    from gateway.ports import SharedKind

    dialects = load_components(config).dialects
    return [["resource", *dialects], *(
        [str(kind), *(_cell(dialect, kind) for dialect in dialects.values())] for kind in SharedKind
    )]


def _cell(dialect: "Dialect", kind: "SharedKind") -> str:
    shown = dialect.resources.get(kind)
    if shown is None:
        return NOWHERE
    return ", ".join([*(f"`{path}`" for path in shown.paths), *([shown.words] if shown.words else [])]) or NOWHERE


def markdown_table(rows: list[list[str]]) -> list[str]:
    """The lines of a table in Markdown; the first row is its header."""
    head, *body = rows
    return [_line(head), _line(["---"] * len(head), ""), *map(_line, body)]


def _line(cells: list[str], space: str = " ") -> str:
    return f"|{'|'.join(f'{space}{cell}{space}' for cell in cells)}|"
