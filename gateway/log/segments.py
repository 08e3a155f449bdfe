"""What one commit has of one session: which of it tells the state, and what it tells of turns and places."""

from collections.abc import Iterable

from gateway.model import BlockDelta, InputRequested, Record, TurnEnded, TurnStarted


def parted(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """What tells the state of the session, and the words that merely lead up to it."""
    spine, words = list[Record](), list[Record]()
    for record in records:
        (words if type(record.event) is BlockDelta else spine).append(record)
    return spine, words


def in_turn_after(records: Iterable[Record]) -> int | None:
    """Whether a turn is open after these; None if they do not tell."""
    told = None
    for record in records:
        if isinstance(record.event, TurnStarted):
            told = 1
        elif isinstance(record.event, TurnEnded):
            told = 0
    return told


def word_of(record: Record) -> str | None:
    """The id under which somebody may look for the session."""
    if isinstance(record.event, TurnStarted):
        return record.turn_id
    return record.event.request_id if isinstance(record.event, InputRequested) else None
