"""Records on their way into a log and out of it: what is secret in them is sealed there, and nowhere else."""

from collections.abc import Sequence

from gateway.model import InputAccepted, Record, SessionCreated, SessionUpdated, with_secrets
from gateway.storage import UNSEALED, Seal, is_sealed

DISCREET = frozenset((InputAccepted, SessionCreated, SessionUpdated))
"""Only these have secrets in them."""


def sealed(records: Sequence[Record], seal: Seal) -> Sequence[Record]:
    return records if seal is UNSEALED else [
        with_secrets(record, seal.closed) if type(record.event) in DISCREET else record for record in records
    ]


def opened(records: list[Record], seal: Seal) -> list[Record]:
    return records if seal is UNSEALED else [
        with_secrets(record, seal.opened) if type(record.event) in DISCREET else record for record in records
    ]


def resealed(records: list[Record], seal: Seal) -> list[Record]:
    """Those that come from elsewhere: what is sealed there stays as it is, and opens with the key of that place."""
    return [
        with_secrets(record, lambda values: {**seal.closed(
            {name: value for name, value in values.items() if not is_sealed(value)}
        ), **{name: value for name, value in values.items() if is_sealed(value)}})
        if type(record.event) in DISCREET else record for record in records
    ]
