"""A conversation at the terminal: what a server says is shown, what it asks is asked, what is typed goes to it."""

from .bell import Bell, Rung
from .line import Line
from .plain import PlainScreen
from .prompting import LinePrompt, Prompt, TerminalPrompt
from .screen import TerminalScreen
from .talking import Screen, Talk

__all__ = [
    "Bell", "Line", "LinePrompt", "PlainScreen", "Prompt", "Rung", "Screen", "Talk", "TerminalPrompt", "TerminalScreen",
]
