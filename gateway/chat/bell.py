"""Ctrl-C: heard at once where somebody waits, remembered where somebody is busy, and never in the middle of a line."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Rung(Exception):
    """Somebody pressed Ctrl-C."""


class Bell:
    """Takes the place of the usual handler for as long as it is entered."""

    def __init__(self) -> None:
        self._rung = False
        self._is_listening = False
        self._before: signal._HANDLER = signal.SIG_DFL

    def __enter__(self) -> "Bell":
        self._before = signal.signal(signal.SIGINT, self._ring)
        return self

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Within this, Ctrl-C raises `Rung`; so does one that came shortly before."""
        self._is_listening = True
        try:
            if self._rung:
                self._rung = False
                raise Rung
            yield
        finally:
            self._is_listening = False

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._is_listening:
            self._is_listening = False
            raise Rung
        self._rung = True
