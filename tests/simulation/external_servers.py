"""Programs outside of the loop that keep its time: they come to rest before the clock moves, and age as it moves."""

from typing import Protocol


class ExternalServer(Protocol):
    """A server of another process. A connection to it does not hold the clock to real time."""

    def settle(self, now: float) -> None:
        """Come back when all that was asked of it has been answered; it is `now` by the loop's clock."""

    def is_busy(self) -> bool:
        """Whether it has read only a part of what it was asked: a server reads long questions in several rounds."""

    def age(self, now: float) -> None:
        """The loop's clock has moved to `now`: whatever the server keeps for a time may be over."""


NEIGHBOURS: dict[int, ExternalServer] = {}
"""Those that run, by their port on this machine."""
