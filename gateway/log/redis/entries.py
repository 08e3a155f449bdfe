"""What one moment has of one session, as one entry of its stream: written for the script, and read back."""

import msgspec

from gateway.log.sealing import opened, sealed
from gateway.log.segments import in_turn_after, parted, word_of
from gateway.model import Record, SessionCreated
from gateway.storage import UNSEALED, Seal

_encode_lines = msgspec.json.Encoder().encode_lines
_encode = msgspec.json.Encoder().encode
_decode_lines = msgspec.json.Decoder(Record).decode_lines


def entry_of(
    session_id: str, token: str, records: list[Record], seal: Seal = UNSEALED,
) -> list[str | bytes | int | float]:
    """What the script wants to know to append these."""
    spine, deltas = parted(records)
    words = [word for record in spine if (word := word_of(record)) is not None]
    now, first = in_turn_after(records), records[0]
    owner = first.event.owner if isinstance(first.event, SessionCreated) else ""
    return [
        session_id, token, first.seq - 1, records[-1].seq, "" if now is None else now,
        owner, _encode_lines(sealed(spine, seal)), _encode_lines(deltas), len(words), *words,
    ]


def decode(lines: bytes, seal: Seal = UNSEALED) -> list[Record]:
    """The records of one entry, in order."""
    return sorted(decode_lines(lines, seal), key=_seq)


def decode_lines(lines: bytes, seal: Seal = UNSEALED) -> list[Record]:
    return opened(_decode_lines(lines), seal)


def is_same(ours: Record, theirs: Record) -> bool:
    return _encode(ours) == _encode(theirs)


def _seq(record: Record) -> int:
    return record.seq
