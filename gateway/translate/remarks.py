"""What is to be said of a translation beside its losses: what was cut off, what could not be read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Remarks:
    """Counted while it goes on, told at its end."""

    records: int = 0
    torn: int = 0
    """Sessions whose last turn was in the middle when the recording ended."""
    is_cut: bool = False
    """Whether the last thing in the recording was cut off."""
    unread: Counter[str] = field(default_factory=Counter)
    """What clients said and could not be read, by its name."""

    def lines(self) -> Iterator[str]:
        if self.is_cut:
            yield "the recording ends in the middle of a line or an event; that was left out"
        if self.torn:
            turns = "a turn" if self.torn == 1 else f"{self.torn} turns"
            yield f"the recording ends in the middle of {turns}; what was open is closed"
        for name, count in self.unread.items():
            yield f"{count} × {name} of the client could not be read; left out"
        if not self.records:
            yield "there was nothing in it to translate"
