"""Where the cursor is: words that flow and are not cut at the edge, lines that stand alone, the margin of a voice."""

import re

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

MARGIN = "│ "
TAB = 8
PIECES = re.compile(r"\n|[^\S\n]+|\S")
"""The end of a line, blanks that belong together, and single characters of words."""
WIDE = 2
"""So many cells has a character of a script that is written without blanks: a line may end after any of them."""


class Page:
    """Keeps the voices apart: each begins on a line of its own, sub-agents to the right of who called them.

    A word is shown when it is whole, so that it goes to the next line if it does not fit. A word that fits on no line
    is left to the terminal, which cuts it: addresses can still be copied.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._voice: object = None
        self._depth, self._style, self._indent = 0, "", 0
        self._at_start = True
        self._column = 0
        self._gap = self._word = ""
        self._ready: list[tuple[str, str]] = []

    def words(self, text: str, style: str = "", depth: int = 0, voice: object = "") -> None:
        """More of what this voice says."""
        if voice != self._voice:
            self.fresh()
            self._voice = voice
        self._depth, self._style, self._indent = depth, style, 0
        self._take(text)
        self._show()

    def line(self, text: str, style: str = "", depth: int = 0) -> None:
        """Something that is a line by itself; what does not fit goes on below where it began."""
        self.fresh()
        self._depth, self._style, self._indent = depth, style, len(text) - len(text.lstrip(" "))
        self._take(f"{text}\n")
        self._show()

    def pause(self) -> None:
        """Nothing follows for now: a word of which more could have come is shown as it is."""
        self._end_word()
        self._show()

    def fresh(self) -> None:
        """The cursor is at the start of a line, and nobody speaks."""
        self._end_word()
        self._gap = ""
        if not self._at_start:
            self._end_line()
        self._voice = None
        self._show()

    # -- where the cursor is --------------------------------------------------------------------------------------

    def _take(self, text: str) -> None:
        for piece in PIECES.findall(text):
            if piece == "\n":
                self._end_word()
                self._gap = ""
                self._begin_line()
                self._end_line()
            elif piece.isspace():
                self._end_word()
                self._gap += piece.expandtabs(TAB)
            elif cell_len(piece) == WIDE:
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
