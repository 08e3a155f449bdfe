"""Records as logs store them: deltas apart from other records, ids by which a session is found, and sealed secrets."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import gateway.model as m
from gateway.storage.sealing import UNSEALED, Seal, is_sealed


def split_deltas(records: Iterable[m.Record]) -> tuple[list[m.Record], list[m.Record]]:
    """The records that are no deltas, and the deltas."""
    spine, words = list[m.Record](), list[m.Record]()
    for record in records:
        (words if type(record.event) is m.BlockDelta else spine).append(record)
    return spine, words


def records_between(records: list[m.Record], after: int, upto: int | None) -> list[m.Record]:
    """The records after one place and up to another, of records that are in order."""
    start = bisect_right(records, after, key=_seq) if after else 0
    return records[start:] if upto is None else records[start:bisect_right(records, upto, key=_seq)]


def _seq(record: m.Record) -> int:
    return record.seq


def is_in_turn_after(records: Iterable[m.Record]) -> int | None:
    """Whether a turn is open after these records, as 0 or 1; None if none of them begins or ends a turn."""
    in_turn = None
    for record in records:
        if isinstance(record.event, m.TurnStarted):
            in_turn = 1
        elif isinstance(record.event, m.TurnEnded):
            in_turn = 0
    return in_turn


def lookup_id_of(record: m.Record) -> str | None:
    """The id of a turn or an ask, by which its session is found."""
    if isinstance(record.event, m.TurnStarted):
        return record.turn_id
    return record.event.request_id if isinstance(record.event, m.InputRequested) else None


EVENTS_WITH_SECRETS = frozenset((m.InputAccepted, m.SessionCreated, m.SessionUpdated))
"""The events that may have secrets."""


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


def reseal_records(records: Sequence[m.Record], seal: Seal) -> list[m.Record]:
    """Records of another log with sealed secrets; secrets that are sealed already keep the key of that log."""
    return [
        m.with_secrets(record, lambda values: {**seal.seal(
            {name: value for name, value in values.items() if not is_sealed(value)}
        ), **{name: value for name, value in values.items() if is_sealed(value)}})
        if type(record.event) in EVENTS_WITH_SECRETS else record for record in records
    ]
