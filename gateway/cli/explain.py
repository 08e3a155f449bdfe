"""The page of `dragoman check --explain`: what goes out of a dialect on the left, what comes back on the right."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config import Config
    from mappings.language import ExplainedCue, ExplainedEvent, Explanation

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
