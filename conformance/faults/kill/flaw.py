"""Flaws: ways of damaging what a correct server says, each with a lasting name and what the examiners must make of it.

- `breaks`: the damage breaks a MUST, and a case that decides a MUST has to fail.
- `tolerated`: the protocol leaves this freedom, and no case may fail for it.
- `free`: neither; shown, not counted.
"""

from dataclasses import dataclass
from enum import StrEnum


class Expectation(StrEnum):
    """What the examiners must make of a flaw."""

    BREAKS = "breaks"
    TOLERATED = "tolerated"
    FREE = "free"


FAMILIES = {
    "field": ("drop", "null", "type", "enum", "extra", "alter"),
    "number": ("gap", "repeat"),
    "event": ("lose", "first-lost", "double", "swap", "late", "after", "cut"),
    "answer": ("status", "mime", "garble"),
    "framing": ("crlf", "cr", "blank", "utf8", "comment", "lines", "tight", "bom", "hints", "bare", "nameless", "torn"),
    "secret": ("unmask",),
    "page": ("stale",),
}
FAMILY = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}


@dataclass(frozen=True)
class Flaw:
    """One way of damaging what passes: what is done, to which message, and where in it."""

    kind: str
    place: str
    path: str = ""
    expectation: Expectation = Expectation.FREE
    why: str = ""
    owners: tuple[str, ...] = ()
    """The requirements whose sentences it breaks, where that is known."""

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.kind, self.place, self.path)))

    @property
    def family(self) -> str:
        return FAMILY[self.kind]

    @property
    def has_shape(self) -> bool:
        """Whether a schema could mind it: not where messages are sound, and only their order or a value is wrong."""
        return self.family not in ("event", "number", "page") and self.kind not in ("alter", "status")

    @property
    def channel(self) -> str:
        """The channel, where the place is a message of a stream or a socket."""
        return self.place.partition(" ")[0]

    @property
    def event(self) -> str:
        return self.place.partition(" ")[2]
