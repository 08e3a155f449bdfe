"""Actions of a scripted agent, which every dialect can express: say, think, call tools, wait, cut, end."""

from dataclasses import dataclass
from enum import StrEnum


class Asked(StrEnum):
    """What a call needs before the turn goes on."""

    CLIENT = "client"
    """The client runs the tool and returns its result."""
    PERMISSION = "permission"
    """A person allows the server's tool, or denies it."""
    QUESTION = "question"
    """A person answers a question that has options."""
    CONTINUATION = "continuation"
    """A person says whether a long task goes on."""
    ROLLBACK = "rollback"
    """A person chooses what a failed task goes back to."""
    NOTHING = "nothing"
    """The server runs the tool by itself."""


@dataclass(frozen=True)
class Say:
    """Say something, piece by piece."""

    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Think:
    """Think something, piece by piece."""

    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Call:
    """Call tools, all at once; the turn waits for those that need somebody."""

    asked: tuple[Asked, ...]


@dataclass(frozen=True)
class Everything:
    """Send one event of each kind that the dialect has and that asks for nothing."""


@dataclass(frozen=True)
class Unknown:
    """Send an event that the dialect does not have."""


@dataclass(frozen=True)
class Heartbeat:
    """Send what keeps a connection alive and says nothing."""


@dataclass(frozen=True)
class Wait:
    """Send nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Cut:
    """Break the connection: between two events, or within the one that comes next."""

    is_within: bool = False


@dataclass(frozen=True)
class End:
    """End the turn; the reason is a word of the dialect, and a natural end has none."""

    reason: str | None = None


@dataclass(frozen=True)
class Refuse:
    """Answer the message with an error in the dialect's shape."""

    status: int
    retry_after: int | None = None


@dataclass(frozen=True)
class Drop:
    """Close the connection in place of an answer."""


Action = Say | Think | Call | Everything | Unknown | Heartbeat | Wait | Cut | End
Reply = tuple[Action, ...] | Refuse | Drop
"""How one message of a client is answered."""
