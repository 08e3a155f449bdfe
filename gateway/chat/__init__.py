"""A conversation at the terminal with any server: shows the events of the server, and asks the person its questions."""

from .conversation import ChatLoop, Screen
from .screens import PlainScreen, TerminalScreen
from .sync_client import SyncClient
from .terminal_input import InterruptPressed, InterruptWatcher, LinePrompt, Prompt, TerminalPrompt

__all__ = [
    "ChatLoop",
    "InterruptPressed",
    "InterruptWatcher",
    "LinePrompt",
    "PlainScreen",
    "Prompt",
    "Screen",
    "SyncClient",
    "TerminalPrompt",
    "TerminalScreen",
]
