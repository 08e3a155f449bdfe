"""What one commit has of one session: which of it tells the state, and what it tells of turns and places.

Records on their way into a log and out of it: what is secret in them is sealed there, and nowhere else.
"""

from collections.abc import Iterable, Sequence

from gateway.model import (
    BlockDelta,
    InputAccepted,
    InputRequested,
    Record,
    SessionCreated,
    SessionUpdated,
    TurnEnded,
    TurnStarted,
    with_secrets,
)
from gateway.storage.sealing import UNSEALED, Seal, is_sealed


def split_deltas(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """What tells the state of the session, and the words that merely lead up to it."""
    spine, words = list[Record](), list[Record]()
    for record in records:
        (words if type(record.event) is BlockDelta else spine).append(record)
    return spine, words


def is_in_turn_after(records: Iterable[Record]) -> int | None:
    """Whether a turn is open after these; None if they do not tell."""
    told = None
    for record in records:
        if isinstance(record.event, TurnStarted):
            told = 1
        elif isinstance(record.event, TurnEnded):
            told = 0
    return told


def lookup_id_of(record: Record) -> str | None:
    """The id under which somebody may look for the session."""
    if isinstance(record.event, TurnStarted):
        return record.turn_id
    return record.event.request_id if isinstance(record.event, InputRequested) else None


EVENTS_WITH_SECRETS = frozenset((InputAccepted, SessionCreated, SessionUpdated))
"""Only these have secrets in them."""


def seal_records(records: Sequence[Record], seal: Seal) -> Sequence[Record]:
    return records if seal is UNSEALED else [
        with_secrets(record, seal.seal) if type(record.event) in EVENTS_WITH_SECRETS else record for record in records
    ]


def unseal_records(records: list[Record], seal: Seal) -> list[Record]:
    return records if seal is UNSEALED else [
        with_secrets(record, seal.unseal) if type(record.event) in EVENTS_WITH_SECRETS else record for record in records
    ]


def reseal_records(records: list[Record], seal: Seal) -> list[Record]:
    """Those that come from elsewhere: what is sealed there stays as it is, and opens with the key of that place."""
    return [
        with_secrets(record, lambda values: {**seal.seal(
            {name: value for name, value in values.items() if not is_sealed(value)}
        ), **{name: value for name, value in values.items() if is_sealed(value)}})
        if type(record.event) in EVENTS_WITH_SECRETS else record for record in records
    ]
