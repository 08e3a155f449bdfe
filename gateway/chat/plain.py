"""What is heard, for a pipe: the agent's own words on one side, everything that a person must know on the other."""

from typing import TextIO

from gateway.model import BlockDelta, BlockEnded, BlockKind, in_markdown
from gateway.upstream import Ended, Heard

from .screen import raw
from .words import clean


class PlainScreen:
    """Words without control codes; what is no reply goes to `beside`."""

    def __init__(self, reply: TextIO, beside: TextIO) -> None:
        self.is_raw = False
        self._reply, self._beside = reply, beside
        self._at_start = True

    def note(self, text: str) -> None:
        """Nobody is there to read how it goes."""

    def trouble(self, text: str) -> None:
        self.rest()
        self._put(self._beside, f"{clean(text)}\n")

    def ask(self, text: str) -> None:
        self.trouble(text)

    def begin(self) -> None:
        self._at_start = True

    def heard(self, heard: Heard) -> None:
        if self.is_raw:
            self._words(f"{raw(heard)}\n")
        elif isinstance(heard, Ended):
            if heard.fault is not None:
                self.trouble(f"the agent failed: {heard.fault.message}")
        elif isinstance(heard, BlockDelta) and heard.kind is BlockKind.TEXT:
            self._words(clean(heard.delta))
        elif isinstance(heard, BlockEnded) and heard.image is not None:
            self._words(clean(in_markdown(heard.image)))

    def rest(self) -> None:
        if not self._at_start:
            self._words("\n")

    def _words(self, text: str) -> None:
        if text:
            self._put(self._reply, text)
            self._at_start = text.endswith("\n")

    @staticmethod
    def _put(target: TextIO, text: str) -> None:
        target.write(text)
        target.flush()
