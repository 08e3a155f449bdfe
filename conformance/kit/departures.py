"""Departures: what a server does otherwise than a requirement says, noted while a case goes on to judge another one."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from conformance.kit.expect import Failed, Unanswered, owned, show
from conformance.kit.transcript import Transcript


@dataclass(frozen=True)
class Departure:
    """A sentence that the server did not keep: whose it is, what was expected, and what was seen."""

    owner: str
    """The id of the requirement whose sentence it is."""
    expected: str
    seen: str
    is_misleading: bool = False
    """Whether what is judged by the same exchange may fail because of this alone."""


@dataclass(frozen=True)
class Reading:
    """Which of several readings of a sentence the server keeps, where the sentence allows more than one."""

    owner: str
    """The id of the requirement whose sentence it is."""
    words: str


@dataclass
class Departures:
    """The departures of one case, in the order they were seen; of each requirement the first is kept."""

    transcript: Transcript = field(default_factory=Transcript)
    noted: list[Departure] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    def note(self, owner: str, expected: str, seen: object, *, is_misleading: bool = False) -> None:
        """Record a departure from a requirement, and go on; a failure after a misleading one is because of it."""
        if any(item.owner == owner for item in self.noted):
            return
        found = Departure(owner, expected, show(seen) or "nothing", is_misleading)
        self.noted.append(found)
        self.transcript.remark(f"departs from {owner}: expected {found.expected}; seen: {found.seen}")

    def read_as(self, owner: str, words: str) -> None:
        """Record which reading of an ambiguous sentence the server keeps; either is right."""
        self.adopt_readings([Reading(owner, words)])

    def adopt_readings(self, readings: Iterable[Reading]) -> None:
        """Keep readings that were seen in an exchange that this case judges, too."""
        self.readings += [item for item in dict.fromkeys(readings) if item not in self.readings]

    def adopt(self, noted: Iterable[Departure]) -> None:
        """Count what was noted in an exchange that this case judges, too."""
        for item in noted:
            if not any(own.owner == item.owner for own in self.noted):
                self.noted.append(item)

    @contextmanager
    def noting(self, owner: str) -> Iterator[None]:
        """Record what fails in here as a departure from this requirement, and go on; silence stays a failure."""
        try:
            with owned(owner):
                yield
        except Unanswered:
            raise
        except Failed as failure:
            self.note(failure.owner or owner, failure.expected, failure.seen)

    @property
    def first(self) -> str | None:
        """The requirement departed from first."""
        return self.noted[0].owner if self.noted else None
