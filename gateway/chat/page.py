"""Where the cursor is: words that flow, lines that stand alone, and the margin of whoever speaks."""

from rich.console import Console
from rich.text import Text

MARGIN = "│ "


class Page:
    """Keeps the voices apart: each begins on a line of its own, sub-agents to the right of who called them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._voice: object = None
        self._at_start = True

    def words(self, text: str, style: str = "", depth: int = 0, voice: object = "") -> None:
        """More of what this voice says."""
        if voice != self._voice:
            self.fresh()
            self._voice = voice
        for piece in text.splitlines(keepends=True):
            if self._at_start:
                self._put(MARGIN * depth, "dim")
            self._put(piece, style)
            self._at_start = piece.endswith("\n")

    def line(self, text: str, style: str = "", depth: int = 0) -> None:
        """Something that is a line by itself."""
        self.fresh()
        self._put(MARGIN * depth, "dim")
        self._put(f"{text}\n", style)

    def fresh(self) -> None:
        """The cursor is at the start of a line, and nobody speaks."""
        if not self._at_start:
            self._put("\n", "")
        self._at_start, self._voice = True, None

    def _put(self, text: str, style: str) -> None:
        if text:
            self._console.print(Text(text, style=style), end="", soft_wrap=True, highlight=False)
