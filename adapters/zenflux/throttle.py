"""DeltaThrottle: words that follow one another quickly become one frame. Time is an argument."""

from typing import NamedTuple


class Merged(NamedTuple):
    """What is to be said now: words of one block, and when they were due."""

    block: int
    text: str
    at: float


class DeltaThrottle:
    """Lets the first words of a block pass at once, and those that follow every so many seconds.

    Nothing is reordered, nothing is merged across blocks, nothing is lost. What was held back is stamped with the time
    when it was due, so that a reader that is told later hears the same as one that was told by a timer.
    """

    __slots__ = ("_held", "_index", "_open_at", "_seconds", "deadline")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._index = -1
        self._held: list[str] = []
        self._open_at = 0.0
        self.deadline: float | None = None
        """When what is held back is due."""

    def take(self, index: int, text: str, at: float) -> list[Merged]:
        """What can be said once these words have come."""
        said = self.due(at)
        if index != self._index:
            said += self.release(at)
            self._index, self._open_at = index, at
        if self._held or at < self._open_at:
            self._held.append(text)
            self.deadline = self._open_at
        else:
            self._open_at = at + self._seconds
            said.append(Merged(index, text, at))
        return said

    def due(self, now: float) -> list[Merged]:
        """What was held back, if its time has come."""
        return self.release(self.deadline) if self.deadline is not None and self.deadline <= now else []

    def release(self, at: float) -> list[Merged]:
        """What was held back, because something else is about to be said."""
        if self.deadline is None:
            return []
        merged = Merged(self._index, "".join(self._held), min(at, self.deadline))
        self._held, self.deadline = [], None
        self._open_at = merged.at + self._seconds
        return [merged]
