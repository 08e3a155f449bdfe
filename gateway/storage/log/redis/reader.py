"""Reads the log in Redis: the records and the lists of sessions; encodes and decodes entries of streams."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import structlog

import gateway.model as m
from gateway.ports import ListedSession, ListOrder, SessionHead
from gateway.search_terms import keyword_terms
from gateway.storage.log.segments import (
    is_in_turn_after,
    lookup_id_of,
    records_between,
    seal_records,
    split_deltas,
    unseal_records,
)
from gateway.storage.log.session_texts import terms_in_slices
from gateway.storage.redis import RedisClient
from gateway.storage.sealing import UNSEALED, Seal
from gateway.time_slices import next_slice

Argument = str | bytes | int | float
"""What a script may be given."""
PAGE = 256
"""How many entries are read in one request."""
log = structlog.get_logger("dragoman.log")
_decode_summary = msgspec.json.Decoder(m.SessionSummary).decode
SESSIONS_PER_PAGE = 64
"""How many sessions of an older Dragoman are put into the lists in one request."""
INDEXED_AT_ONCE = 20
"""How many sessions are put into the index of texts in one request, before a search."""
COMPLETE = "lists"
"""The key that says that all sessions are in the lists."""


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

    async def read_without_deltas(
        self, session_id: str, after: int = 0, upto: int | None = None,
    ) -> Sequence[m.Record]:
        found, place = list[m.Record](), str(after)
        while upto is None or int(place.partition("-")[0]) < upto:
            page = await self.redis.run_read_script("spine", session_id, place, PAGE)
            found += [record for lines in page[1:] for record in decode_lines(lines, self.seal)]
            if len(page) <= PAGE:
                break
            place = page[0].decode()
        return records_between(found, after, upto)

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
    summary: Sequence[Argument] = ("", 0, 0, 0),
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


def encode_news(records: list[m.Record], seal: Seal) -> bytes:
    """What the script `append` announces of these records."""
    spine, deltas = split_deltas(records)
    return _encode_lines(seal_records(spine, seal)) + _encode_lines(deltas)


def decode_entry(lines: bytes, seal: Seal = UNSEALED) -> list[m.Record]:
    """The records of one entry, in order."""
    return sorted(decode_lines(lines, seal), key=_seq)


def decode_lines(lines: bytes, seal: Seal = UNSEALED) -> list[m.Record]:
    return unseal_records(_decode_lines(lines), seal)


def is_same_record(ours: m.Record, theirs: m.Record) -> bool:
    return _encode(ours) == _encode(theirs)


def _seq(record: m.Record) -> int:
    return record.seq


class RedisSessionLists:
    """Knows the summaries of the sessions that this server writes, and reads the lists of all sessions."""

    def __init__(self, redis: RedisClient, reader: RedisLogReader) -> None:
        self._redis = redis
        self._reader = reader
        self._summaries: dict[str, m.SessionSummary] = {}
        """By session, as Redis has them; of sessions that this server has written."""

    # -- writing --------------------------------------------------------------------------------------------------

    async def changed(self, batch: Mapping[str, Sequence[m.Record]]) -> dict[str, m.SessionSummary]:
        """The new summaries of those sessions whose summaries these records change."""
        found: dict[str, m.SessionSummary] = {}
        for session_id, records in batch.items():
            events = [record for record in records if type(record.event) in m.SUMMARY_EVENTS]
            if not events:
                continue
            old = self._summaries.get(session_id)
            if old is None and records[0].seq > 1:
                old = await self._stored(session_id, records[0].seq)
            new = m.summarize(old, events)
            if new is not None and new != old:
                found[session_id] = new
        return found

    async def _stored(self, session_id: str, before: int) -> m.SessionSummary | None:
        """The summary before that record; of a session of an older Dragoman it is computed from the records."""
        [stored] = await self._redis.read_all([("HGET", self._redis.key("s", session_id), "summary")])
        if stored is not None:
            return _decode_summary(stored)
        records = await self._reader.read_without_deltas(session_id)
        return m.summarize(None, [record for record in records if record.seq < before])

    def stored(self, session_id: str, summary: m.SessionSummary | None) -> None:
        """Redis has this summary now."""
        if summary is not None:
            self._summaries[session_id] = summary

    def let_go(self, session_id: str) -> None:
        """Another server may write the session, or this server cannot know what Redis has."""
        self._summaries.pop(session_id, None)

    def clear(self) -> None:
        self._summaries.clear()

    # -- reading --------------------------------------------------------------------------------------------------

    async def page(self, owner: str, label: str, order: ListOrder, offset: int, limit: int) -> list[ListedSession]:
        if limit <= 0:
            return []
        return _listed(await self._redis.run_read_script("listed", order, owner, label, offset, offset + limit - 1))

    async def mentioning(self, owner: str, text: str) -> list[ListedSession] | None:
        terms = keyword_terms(text)
        if not terms:
            return None
        await self._index_texts(owner)
        return _listed(await self._redis.run_read_script("mentioning", owner, *map(_spelled, sorted(terms))))

    async def _index_texts(self, owner: str) -> None:
        """Put the texts into the index that are new since the last search, a few sessions at a time."""
        while sessions := await self._redis.run_script("unindexed", owner, INDEXED_AT_ONCE):
            calls: list[tuple[str, Sequence[Argument]]] = []
            for session_id, head, indexed in sessions:
                new = await self._reader.read_without_deltas(session_id.decode(), int(indexed), int(head))
                terms = sorted(await terms_in_slices(new))
                calls.append(("index_texts", [owner, session_id, head, indexed, *map(_spelled, terms)]))
                await next_slice()
            await self._redis.run_scripts(calls)

    async def created_between(
        self, owner: str, first: float, last: float, limit: int,
    ) -> list[ListedSession] | None:
        """None if there are sessions without a summary; times that an older server did not store are added first."""
        query = (owner, repr(first), repr(last), limit)
        rows = await self._redis.run_read_script("created_between", *query)
        if rows is None and await self._redis.run_script("add_times", owner):
            rows = await self._redis.run_read_script("created_between", *query)
        return None if rows is None else _listed(rows)

    async def count(self, owner: str, label: str) -> int:
        size = len(owner.encode(errors="surrogatepass"))
        [count] = await self._redis.read_all([("ZCARD", self._redis.key("createdlist", str(size), owner, label))])
        return int(count)

    # -- the sessions of an older Dragoman ------------------------------------------------------------------------

    async def complete(self) -> None:
        """Put the sessions into the lists that were written before there were lists; once for all servers."""
        [is_complete] = await self._redis.read_all([("GET", self._redis.key(COMPLETE))])
        if is_complete is not None:
            return
        after, count = 0, 0
        while heads := await self._reader.sessions(None, after=after, limit=SESSIONS_PER_PAGE, oldest_first=True):
            given: list[Argument] = []
            for head in heads:
                given += await self._entry(head)
            if given:
                count += await self._redis.run_script("enlist", *given)
            after = heads[-1].ordinal
        await self._redis.run_script("listed_all")
        if count:
            log.info("session_lists_built", sessions=count)

    async def _entry(self, head: SessionHead) -> list[Argument]:
        summary = await self._stored(head.session_id, head.head + 1)
        return [] if summary is None else [head.session_id, head.head, *summary_arguments(summary)]


def _listed(rows: Sequence[tuple[bytes, bytes, bytes | None]]) -> list[ListedSession]:
    return [
        ListedSession(session_id=session_id.decode(), ordinal=int(ordinal), summary=_decode_summary(summary))
        for session_id, ordinal, summary in rows
        if summary is not None
    ]


def _spelled(term: str) -> bytes:
    return term.encode(errors="surrogatepass")


def summary_arguments(summary: m.SessionSummary | None) -> list[Argument]:
    """The arguments of scripts for a summary; for None, that nothing changes."""
    if summary is None:
        return ["", 0, 0, 0]
    times = repr(summary.updated_at), repr(summary.created_at)
    return [_encode(summary), *times, len(summary.labels), *summary.labels]
