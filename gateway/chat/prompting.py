"""Where a person's words come from: a terminal with its line editing, or lines of a pipe."""

from typing import Protocol, TextIO

from .bell import Bell


class Prompt(Protocol):
    """Somebody who can be asked. `EOFError` where nobody answers any more, `Rung` where Ctrl-C was the answer."""

    def read(self, label: str) -> str: ...


class TerminalPrompt:
    """A person at a terminal; lines can be edited, and earlier ones be had again."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        try:
            import readline
        except ImportError:
            return  # a terminal without line editing is still one
        readline.parse_and_bind("set enable-bracketed-paste on")  # libedit, which has none, does not mind

    def read(self, label: str) -> str:
        return self._bell.reading(lambda: input(label))


class LinePrompt:
    """A file or a pipe: each line is what somebody would have typed."""

    def __init__(self, bell: Bell, lines: TextIO) -> None:
        self._bell, self._lines = bell, lines

    def read(self, label: str) -> str:
        line = self._bell.reading(self._lines.readline)
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
