"""Reads the log in Redis: the records of a session, and the list of sessions; encodes and decodes entries."""

from collections.abc import Iterable, Sequence

import msgspec

import gateway.model as m
from gateway.ports import SessionHead
from gateway.storage.log.segments import is_in_turn_after, lookup_id_of, seal_records, split_deltas, unseal_records
from gateway.storage.redis import RedisClient
from gateway.storage.sealing import UNSEALED, Seal

Argument = str | bytes | int | float
"""What a script may be given."""
PAGE = 256
"""How many entries are read in one request."""


class RedisLogReader:
    """Reads what is stored, whichever server writes it."""

    def __init__(self, redis: RedisClient, seal: Seal = UNSEALED) -> None:
        self.redis = redis
        self.seal = seal

    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[m.Record]:
        return await self._read_on(session_id, after, limit)

    async def _read_on(self, session_id: str, after: int, limit: int | None) -> list[m.Record]:
        found: list[m.Record] = []
        key = self.redis.key("log", session_id)
        while limit is None or len(found) < limit:
            count = PAGE if limit is None else min(PAGE, limit - len(found))
            entries = (await self.redis.read_all([("XRANGE", key, after + 1, "+", "COUNT", count)]))[0]
            for _, fields in entries:
                records = decode_entry(fields[3] + fields[5], self.seal)
                found += records if records[0].seq > after else [one for one in records if one.seq > after]
            if len(entries) < count:
                break
            after = found[-1].seq
        return found if limit is None else found[:limit]

    async def since(self, session_id: str, after: int) -> list[m.Record] | None:
        """The records after that one; None if there is no such session, or its log is shorter than that."""
        head = (await self.redis.read_all([("HGET", self.redis.key("s", session_id), "head")]))[0]
        if head is None or int(head) < after:
            return None
        return [] if int(head) == after else await self._read_on(session_id, after, None)

    async def read_without_deltas(self, session_id: str) -> Sequence[m.Record]:
        found, place = list[m.Record](), "0"
        while True:
            page = await self.redis.run_read_script("spine", session_id, place, PAGE)
            found += [record for lines in page[1:] for record in decode_lines(lines, self.seal)]
            if len(page) <= PAGE:
                return found
            place = page[0].decode()

    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        place = "sessions" if owner is None else f"owner:{owner}"
        low, high = "-inf" if after is None else f"({after}", "+inf" if before is None else f"({before}"
        return _heads(await self.redis.run_read_script("list", place, low, high, limit, "" if oldest_first else "REV"))

    async def sessions_in_turn(self, owner: str | None = None) -> Sequence[SessionHead]:
        return _heads(await self.redis.run_read_script("list", "open", *(() if owner is None else (owner,))))

    async def head(self, session_id: str) -> SessionHead | None:
        fields = ("owner", "ordinal", "head", "in_turn")
        row = (await self.redis.read_all([("HMGET", self.redis.key("s", session_id), *fields)]))[0]
        return None if row[0] is None else _heads([(session_id.encode(), *row)])[0]

    async def session_of(self, word: str) -> str | None:
        found = (await self.redis.read_all([("HGET", self.redis.key("places"), word)]))[0]
        return None if found is None else str(found.decode())


HeadRow = tuple[bytes, bytes, bytes, bytes, bytes]
"""The id of a session, its owner, ordinal and head, and whether it is in a turn."""


def _heads(rows: Iterable[HeadRow]) -> list[SessionHead]:
    return [
        SessionHead(
            session_id=session_id.decode(), owner=owner.decode(), ordinal=int(ordinal), head=int(head),
            in_turn=at_work == b"1",
        )
        for session_id, owner, ordinal, head, at_work in rows
    ]


_encode_lines = msgspec.json.Encoder().encode_lines
_encode = msgspec.json.Encoder().encode
_decode_lines = msgspec.json.Decoder(m.Record).decode_lines


def encode_entry(
    session_id: str, token: str, records: list[m.Record], seal: Seal = UNSEALED,
    summary: Sequence[Argument] = ("", 0, 0),
) -> list[Argument]:
    """The arguments of the script `append` for these records of one session."""
    spine, deltas = split_deltas(records)
    words = [word for record in spine if (word := lookup_id_of(record)) is not None]
    now, first = is_in_turn_after(records), records[0]
    owner = first.event.owner if isinstance(first.event, m.SessionCreated) else ""
    return [
        session_id, token, first.seq - 1, records[-1].seq, "" if now is None else now,
        owner, _encode_lines(seal_records(spine, seal)), _encode_lines(deltas), *summary, len(words), *words,
    ]


def decode_entry(lines: bytes, seal: Seal = UNSEALED) -> list[m.Record]:
    """The records of one entry, in order."""
    return sorted(decode_lines(lines, seal), key=_seq)


def decode_lines(lines: bytes, seal: Seal = UNSEALED) -> list[m.Record]:
    return unseal_records(_decode_lines(lines), seal)


def is_same_record(ours: m.Record, theirs: m.Record) -> bool:
    return _encode(ours) == _encode(theirs)


def _seq(record: m.Record) -> int:
    return record.seq
