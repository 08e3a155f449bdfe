"""The table of the resources that dialects share: where each dialect shows each kind, as the dialects declare it."""

from gateway.composition import load_components
from gateway.config import Config
from gateway.ports import Dialect, SharedKind, ShownResource

NOWHERE = "–"


def resource_rows(config: Config) -> list[list[str]]:
    """One row per kind, one column per dialect; the first row is the header."""
    dialects = load_components(config).dialects
    return [["resource", *dialects], *(
        [str(kind), *(_cell(dialect, kind) for dialect in dialects.values())] for kind in SharedKind
    )]


def _cell(dialect: Dialect, kind: SharedKind) -> str:
    shown = dialect.resources.get(kind, ShownResource())
    return ", ".join([*(f"`{path}`" for path in shown.paths), *([shown.words] if shown.words else [])]) or NOWHERE


def markdown_table(rows: list[list[str]]) -> list[str]:
    """The lines of a table in Markdown; the first row is its header."""
    head, *body = rows
    return [_line(head), _line(["---"] * len(head), ""), *map(_line, body)]


def _line(cells: list[str], space: str = " ") -> str:
    return f"|{'|'.join(f'{space}{cell}{space}' for cell in cells)}|"
