"""What can be read out of recorded streams, piece by piece, each with the place it stands at."""

from msgspec import Struct

from gateway.errors import Invalid
from gateway.model import Record
from gateway.upstream import Frame


class Piece(Struct, frozen=True, kw_only=True):
    """Something that was recorded: in which line, when (if that is known), and on which stream."""

    line: int
    at: float | None = None
    stream: str = ""


class Told(Piece, frozen=True, kw_only=True):
    """The server said this."""

    frame: Frame
    connection: str = ""
    """The name of the connection that begins here: what follows may have been told before on another of this name."""


class Sent(Piece, frozen=True, kw_only=True):
    """The client said this: a frame on a socket, or the body of a request, which is named `METHOD /path`."""

    frame: Frame


class Answered(Piece, frozen=True, kw_only=True):
    """The server answered a request, not on a stream; what it says tells at least which session it is about."""

    frame: Frame


class Refused(Piece, frozen=True, kw_only=True):
    """What the client sent last on this stream was not taken."""


class Kept(Piece, frozen=True, kw_only=True):
    """A record, as a log keeps it."""

    record: Record


AnyPiece = Told | Sent | Answered | Refused | Kept


class Unreadable(Invalid):
    """What was recorded cannot be read from this line on."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
