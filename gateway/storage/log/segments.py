"""What one commit has of one session: which of it tells the state, and what it tells of turns and places.

Records on their way into a log and out of it: what is secret in them is sealed there, and nowhere else.
"""

from collections.abc import Iterable, Sequence

import gateway.model as m
from gateway.storage.sealing import UNSEALED, Seal, is_sealed


def split_deltas(records: Iterable[m.Record]) -> tuple[list[m.Record], list[m.Record]]:
    """What tells the state of the session, and the words that merely lead up to it."""
    spine, words = list[m.Record](), list[m.Record]()
    for record in records:
        (words if type(record.event) is m.BlockDelta else spine).append(record)
    return spine, words


def is_in_turn_after(records: Iterable[m.Record]) -> int | None:
    """Whether a turn is open after these; None if they do not tell."""
    told = None
    for record in records:
        if isinstance(record.event, m.TurnStarted):
            told = 1
        elif isinstance(record.event, m.TurnEnded):
            told = 0
    return told


def lookup_id_of(record: m.Record) -> str | None:
    """The id under which somebody may look for the session."""
    if isinstance(record.event, m.TurnStarted):
        return record.turn_id
    return record.event.request_id if isinstance(record.event, m.InputRequested) else None


EVENTS_WITH_SECRETS = frozenset((m.InputAccepted, m.SessionCreated, m.SessionUpdated))
"""Only these have secrets in them."""


def seal_records(records: Sequence[m.Record], seal: Seal) -> Sequence[m.Record]:
    return records if seal is UNSEALED else [
        m.with_secrets(record, seal.seal) if type(record.event) in EVENTS_WITH_SECRETS else record for record in records
    ]


def unseal_records(records: list[m.Record], seal: Seal) -> list[m.Record]:
    return (
        records
        if seal is UNSEALED
        else [
            m.with_secrets(record, seal.unseal) if type(record.event) in EVENTS_WITH_SECRETS else record
            for record in records
        ]
    )


def reseal_records(records: list[m.Record], seal: Seal) -> list[m.Record]:
    """Those that come from elsewhere: what is sealed there stays as it is, and opens with the key of that place."""
    return [
        m.with_secrets(record, lambda values: {**seal.seal(
            {name: value for name, value in values.items() if not is_sealed(value)}
        ), **{name: value for name, value in values.items() if is_sealed(value)}})
        if type(record.event) in EVENTS_WITH_SECRETS else record for record in records
    ]
