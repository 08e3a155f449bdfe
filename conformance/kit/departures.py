"""Departures: what a server does against a requirement, noted while a case goes on to judge another requirement."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from conformance.kit.expect import Failed, Unanswered, owned, show
from conformance.kit.transcript import Transcript


@dataclass(frozen=True)
class Departure:
    """A requirement that the server broke: its id, what was expected, and what was seen."""

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
    """The departures of one case, in order; only the first of each requirement is kept."""

    transcript: Transcript = field(default_factory=Transcript)
    noted: list[Departure] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    def note(self, owner: str, expected: str, seen: object, *, is_misleading: bool = False) -> None:
        """Record a departure from a requirement, and go on; a failure after a misleading one is attributed to it.

        Of each requirement the first is kept, or the first that is misleading.
        """
        found = Departure(owner, expected, show(seen) or "nothing", is_misleading)
        known = next((place for place, item in enumerate(self.noted) if item.owner == owner), None)
        if known is None:
            self.noted.append(found)
        elif is_misleading and not self.noted[known].is_misleading:
            self.noted[known] = found
        else:
            return
        self.transcript.remark(f"departs from {owner}: expected {found.expected}; seen: {found.seen}")

    def read_as(self, owner: str, words: str) -> None:
        """Record which reading of an ambiguous sentence the server keeps; either is right."""
        self.adopt_readings([Reading(owner, words)])

    def adopt_readings(self, readings: Iterable[Reading]) -> None:
        """Add the readings that were seen in an exchange which this case also judges."""
        self.readings += [item for item in dict.fromkeys(readings) if item not in self.readings]

    def adopt(self, noted: Iterable[Departure]) -> None:
        """Add the departures that were noted in an exchange which this case also judges."""
        for item in noted:
            if not any(own.owner == item.owner for own in self.noted):
                self.noted.append(item)

    @contextmanager
    def noting(self, owner: str, *, is_misleading: bool = False) -> Iterator[None]:
        """Record a failure in this context as a departure from this requirement, and go on; silence stays a failure."""
        try:
            with owned(owner):
                yield
        except Unanswered:
            raise
        except Failed as failure:
            self.note(failure.owner or owner, failure.expected, failure.seen, is_misleading=is_misleading)

    @property
    def is_misled(self) -> bool:
        """Whether what fails from now on may be due to what was noted."""
        return any(item.is_misleading for item in self.noted)

    @property
    def first(self) -> str | None:
        """The requirement of the first departure."""
        return self.noted[0].owner if self.noted else None
