"""Lays out text for a terminal: escapes control characters, shortens values, wraps words, indents sub-agents."""

import re

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import gateway.model as m

RESULT_LINES = 4
"""The number of lines that are shown of a result."""
MAX_TEXT_LENGTH = 20_000
"""The number of characters that are shown of a value that people must see."""
MAX_LINE_LENGTH = 200
"""The number of characters that are shown of a one-line value."""


def escape_controls(text: str) -> str:
    """Escape characters that could move the cursor or colour the terminal; keep line ends and tabs."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def shorten(text: str, longest: int = MAX_LINE_LENGTH) -> str:
    """Return the text as one short line."""
    line = escape_controls(text).replace("\n", " ").strip()
    return line if len(line) <= longest else f"{line[:longest - 1]}…"


def as_json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return str(value)


def indented_json(value: object, longest: int = MAX_TEXT_LENGTH) -> list[str]:
    """Return the value as indented JSON; a very long value is cut, with the number of missing characters."""
    try:
        text = escape_controls(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    except TypeError:
        text = escape_controls(str(value))
    left = len(text) - longest
    return [*text[:longest].split("\n"), *([f"… {left:,} more characters"] if left > 0 else [])]


def first_lines(content: m.Content, lines: int = RESULT_LINES) -> list[str]:
    """Return the first lines of some content, and the number of lines left out."""
    every = escape_controls("\n".join(map(_part_text, m.parts_of(content)))).rstrip("\n").split("\n")
    shown = [shorten(line) for line in every[:lines]]
    left = len(every) - lines
    return [*shown, f"… {plural(left, 'more line')}"] if left > 0 else shown


def plural(number: int, thing: str) -> str:
    """Return `1 token`, `2 tokens`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _part_text(part: m.AnyPart) -> str:
    if isinstance(part, m.TextPart | m.ThinkingPart):
        return part.text
    if isinstance(part, m.ImagePart):
        return f"[image] {shorten(part.url, 80)}"
    if isinstance(part, m.FilePart):
        return f"[file] {part.name}"
    if isinstance(part, m.DataPart):
        return f"[{part.type}] {as_json(part.content)}"
    assert isinstance(part, m.ToolUsePart), "there are no other parts"
    return f"[call] {part.call.name}"


MARGIN = "│ "
TAB = 8
TEXT_PIECES = re.compile(r"\n|[^\S\n]+|\S")
"""Matches a line end, a run of spaces, or one character of a word."""
WIDE_CELLS = 2
"""The width of a character of a script without spaces: a line may break after each of them."""


class TerminalWriter:
    """Writes text of several scopes: each starts on a new line, sub-agents are indented.

    A word is written when it is complete, so that it moves to the next line if it does not fit. A word that is longer
    than a line is left to the terminal, so that URLs can still be copied.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._voice: object = None
        self._depth, self._style, self._indent = 0, "", 0
        self._at_start = True
        self._column = 0
        self._gap = self._word = ""
        self._ready: list[tuple[str, str]] = []

    def write(self, text: str, style: str = "", depth: int = 0, voice: object = "") -> None:
        """Write more text of this scope."""
        if voice != self._voice:
            self.start_line()
            self._voice = voice
        self._depth, self._style, self._indent = depth, style, 0
        self._take(text)
        self._show()

    def line(self, text: str, style: str = "", depth: int = 0) -> None:
        """Write a line of its own; a long line continues below its start."""
        self.start_line()
        self._depth, self._style, self._indent = depth, style, len(text) - len(text.lstrip(" "))
        self._take(f"{text}\n")
        self._show()

    def pause(self) -> None:
        """Write an incomplete word as it is: no more text follows for now."""
        self._end_word()
        self._show()

    def start_line(self) -> None:
        """Move the cursor to the start of a line, with no current scope."""
        self._end_word()
        self._gap = ""
        if not self._at_start:
            self._end_line()
        self._voice = None
        self._show()

    # -- the position of the cursor -------------------------------------------------------------------------------

    def _take(self, text: str) -> None:
        for piece in TEXT_PIECES.findall(text):
            if piece == "\n":
                self._end_word()
                self._gap = ""
                self._begin_line()
                self._end_line()
            elif piece.isspace():
                self._end_word()
                self._gap += piece.expandtabs(TAB)
            elif cell_len(piece) == WIDE_CELLS:
                self._end_word()
                self._word = piece
                self._end_word()
            else:
                self._word += piece

    def _end_word(self) -> None:
        if not self._word:
            return
        width = self._console.width
        if not self._at_start and self._column + cell_len(self._gap) + cell_len(self._word) > width:
            self._end_line()
            self._gap = " " * self._indent
        self._begin_line()
        text = self._gap + self._word
        self._ready.append((text, self._style))
        self._column += cell_len(text)
        if self._column > width:
            self._column %= width
        self._gap = self._word = ""

    def _begin_line(self) -> None:
        if self._at_start:
            self._ready.append((MARGIN * self._depth, "dim"))
            self._column, self._at_start = cell_len(MARGIN) * self._depth, False

    def _end_line(self) -> None:
        self._ready.append(("\n", ""))
        self._column, self._at_start = 0, True

    def _show(self) -> None:
        if self._ready:
            text = Text.assemble(*self._ready)
            self._ready.clear()
            self._console.print(text, end="", soft_wrap=True, highlight=False)
