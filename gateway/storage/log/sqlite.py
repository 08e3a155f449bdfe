"""The log in a SQLite file: what one commit stores of one session is one segment, with its deltas apart."""

import asyncio
import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ports import NO_LISTENER, ListedSession, ListOrder, LogListener, SessionHead
from gateway.quotas import Quotas
from gateway.search_terms import keyword_terms
from gateway.storage.sealing import UNSEALED, Seal
from gateway.storage.sqlite import (
    Database,
    add_to_counter,
    created_rows,
    forget_texts,
    has_new_texts,
    index_texts,
    leave_lists,
    list_page,
    list_size,
    sessions_mentioning,
    update_lists,
)

from .segments import is_in_turn_after, lookup_id_of, records_between, seal_records, split_deltas, unseal_records

encode_lines = msgspec.json.Encoder().encode_lines
decode_lines = msgspec.json.Decoder(m.Record).decode_lines
Batch = dict[str, list[m.Record]]
"""Records that wait to be written, by session."""

SEGMENT = 512
"""More records of one commit become several segments, so that reading a page decodes few other records."""
INDEXED_AT_ONCE = 20
"""How many sessions are indexed in one commit, before a search."""
BYTES_COUNTER = "log.bytes"
"""The counter that says whether bytes are counted, and the prefix of the counters of each owner."""
SELECT_BYTES = "SELECT coalesce(sum(length(spine) + length(words)), 0) FROM segments"
SELECT_HEADS = "SELECT ordinal, session_id, owner, head, in_turn FROM sessions"
SELECT_IN_TURN = f"{SELECT_HEADS} INDEXED BY sessions_in_turn WHERE in_turn"
"""The index is named, because SQLite would look at all sessions of an owner: it does not know how few are in a turn."""


class SqliteLog:
    """The default log: a record is reported when the file has it, and is still there after a crash."""

    def __init__(self, database: Database, seal: Seal = UNSEALED, tally: Quotas | None = None) -> None:
        self._listener: LogListener = NO_LISTENER
        self._database = database
        self._seal = seal
        self._tally = tally or Quotas()
        self._writing: SegmentWriter | None = None
        self._pending: Batch = {}
        self._leaving: Batch = {}
        self._safe: asyncio.Future[None] | None = None
        self._leaving_safe: asyncio.Future[None] | None = None
        self._count = 0
        database.attach(self)

    def attach(self, listener: LogListener) -> None:
        assert self._listener is NO_LISTENER, "a log has one listener"
        self._listener = listener

    def error_of(self, session_id: str) -> GatewayError | None:
        return self.write_error

    async def open(self) -> None:
        await self._database.open()
        if not await self._database.read(lambda file: add_to_counter(file, BYTES_COUNTER)):
            await self._database.write(count_stored_bytes)
        for owner, sessions, size in await self._database.read(usage_by_owner):
            self._count += sessions
            self._tally.add(owner, sessions=sessions, stored_bytes=size)

    @property
    def session_count(self) -> int:
        return self._count

    @property
    def write_error(self) -> GatewayError | None:
        return self._database.trouble

    # -- writing --------------------------------------------------------------------------------------------------

    def append(self, record: m.Record) -> None:
        records = self._pending.get(record.session_id)
        if records is not None:
            records.append(record)
            return
        self._pending[record.session_id] = [record]
        if isinstance(record.event, m.SessionCreated):  # now: two new sessions must not both get the last place
            self._count += 1
            self._tally.add(record.event.owner, sessions=1)
        self._database.schedule_write()

    def append_deltas(self, records: Sequence[m.Record]) -> None:
        self.append(records[0])
        self._pending[records[0].session_id] += records[1:]

    def gather(self) -> "SegmentWriter | None":
        for session_id, records in self._pending.items():
            self._leaving.setdefault(session_id, []).extend(records)
        self._pending = {}
        self._leaving_safe, self._safe = self._safe, None
        self._writing = SegmentWriter(self._leaving, self._seal) if self._leaving else None
        return self._writing

    def committed(self) -> None:
        batch, self._leaving = self._leaving, {}
        for owner, size in self._writing.sizes.items() if self._writing is not None else ():
            self._tally.add(owner, stored_bytes=size)
        for records in batch.values():
            self._listener.committed(records)
        if self._leaving_safe is not None and not self._leaving_safe.done():
            self._leaving_safe.set_result(None)

    def failed(self, error: GatewayError) -> None:
        """Keep the records of the group; they are written again before newer ones."""
        for waiting in (self._leaving_safe, self._safe):
            if waiting is not None and not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # the task that waited may be gone
        self._leaving_safe = self._safe = None
        self._listener.failed(error)

    async def wait_stored(self, session_id: str, seq: int) -> None:
        if session_id not in self._pending and session_id not in self._leaving:
            return
        if self.write_error is not None:
            raise self.write_error
        future = asyncio.get_running_loop().create_future
        if session_id in self._pending:
            waiting = self._safe = self._safe or future()
        else:
            waiting = self._leaving_safe = self._leaving_safe or future()
        await asyncio.shield(waiting)

    async def delete_session(self, session_id: str) -> None:
        gone = await self._database.write(lambda file: remove_session(file, session_id))
        if gone is not None:
            owner, size = gone
            self._count -= 1
            self._tally.add(owner, sessions=-1, stored_bytes=-size)

    async def close(self) -> None:
        await self._database.close()

    # -- reading --------------------------------------------------------------------------------------------------

    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[m.Record]:
        return await self._database.read(lambda file: _read(file, session_id, after, limit, self._seal))

    async def read_without_deltas(
        self, session_id: str, after: int = 0, upto: int | None = None,
    ) -> Sequence[m.Record]:
        return await self._database.read(lambda file: _read_spine(file, session_id, after, upto, self._seal))

    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        bounds = {"ordinal < ?": before, "ordinal > ?": after, "owner = ?": owner}
        asked = {words: value for words, value in bounds.items() if value is not None}
        query, order = " AND ".join(asked) or "1", "ASC" if oldest_first else "DESC"
        return await self._heads(
            f"{SELECT_HEADS} WHERE {query} ORDER BY ordinal {order} LIMIT ?", (*asked.values(), limit)
        )

    async def listed(
        self, owner: str, label: str, order: ListOrder, *, offset: int = 0, limit: int = 50,
    ) -> Sequence[ListedSession]:
        return await self._database.read(lambda file: list_page(file, owner, label, order, offset, limit))

    async def mentioning(self, owner: str, text: str) -> Sequence[ListedSession] | None:
        if not keyword_terms(text):
            return None
        if await self._database.read(lambda file: has_new_texts(file, owner)):
            while await self._database.write(lambda file: index_texts(file, owner, INDEXED_AT_ONCE)):
                pass  # others write between two of them
        return await self._database.read(lambda file: sessions_mentioning(file, owner, text))

    async def created_between(self, owner: str, first: float, last: float, limit: int) -> Sequence[ListedSession]:
        return await self._database.read(lambda file: created_rows(file, owner, first, last, limit))

    async def count_listed(self, owner: str, label: str) -> int:
        return await self._database.read(lambda file: list_size(file, owner, label))

    async def sessions_in_turn(self, owner: str | None = None) -> Sequence[SessionHead]:
        mine, given = ("AND owner = ?", (owner,)) if owner is not None else ("", ())
        return await self._heads(f"{SELECT_IN_TURN} {mine} ORDER BY ordinal", given)

    async def head(self, session_id: str) -> SessionHead | None:
        return next(iter(await self._heads(f"{SELECT_HEADS} WHERE session_id = ?", (session_id,))), None)

    async def session_of(self, word: str) -> str | None:
        def find(file: sqlite3.Connection) -> str | None:
            row = file.execute(
                "SELECT session_id FROM places JOIN sessions ON session = ordinal WHERE word = ?", (word,)).fetchone()
            return None if row is None else str(row[0])

        return await self._database.read(find)

    async def _heads(self, query: str, given: Iterable[object]) -> list[SessionHead]:
        def read(file: sqlite3.Connection) -> list[SessionHead]:
            return list(map(row_to_head, file.execute(query, tuple(given))))

        return await self._database.read(read)


def row_to_head(row: tuple[int, str, str, int, int]) -> SessionHead:
    ordinal, session_id, owner, head, in_turn = row
    return SessionHead(ordinal=ordinal, session_id=session_id, owner=owner, head=head, in_turn=bool(in_turn))


class SegmentWriter:
    """One batch on its way into the file; called in the thread that writes."""

    def __init__(self, batch: Batch, seal: Seal = UNSEALED) -> None:
        self._batch = batch
        self._seal = seal
        self.sizes: dict[str, int] = {}
        """How many bytes were written for each owner."""

    def __call__(self, file: sqlite3.Connection) -> None:
        segments, places, sizes = [], [], dict[str, int]()
        for session_id, records in self._batch.items():
            place = self._place(file, session_id, records)
            if place is None:
                continue  # the session was just deleted
            ordinal, owner = place
            listed: list[m.Record] = []
            for start in range(0, len(records), SEGMENT):
                some = records[start:start + SEGMENT]
                spine, words = split_deltas(some)
                lines, deltas = self._lines(spine), encode_lines(words)
                sizes[owner] = sizes.get(owner, 0) + len(lines) + len(deltas)
                segments.append((ordinal, some[-1].seq, m.MODEL_VERSION, lines, deltas))
                places += [(word, ordinal) for record in spine if (word := lookup_id_of(record)) is not None]
                listed += spine
            update_lists(file, ordinal, owner, listed)
        file.executemany("INSERT INTO segments VALUES (?, ?, ?, ?, ?)", segments)
        if places:
            file.executemany("INSERT OR REPLACE INTO places VALUES (?, ?)", places)
        for owner, size in sizes.items():
            add_to_counter(file, f"{BYTES_COUNTER}:{owner}", size)
        self.sizes = sizes

    def _lines(self, spine: Sequence[m.Record]) -> bytes:
        return encode_lines(seal_records(spine, self._seal))

    def _place(self, file: sqlite3.Connection, session_id: str, records: list[m.Record]) -> tuple[int, str] | None:
        """The ordinal of the session and its owner; its row is updated."""
        head, in_turn = records[-1].seq, is_in_turn_after(records)
        if isinstance(created := records[0].event, m.SessionCreated):
            row = file.execute(
                "INSERT INTO sessions (session_id, owner, head, in_turn, created_at) VALUES (?, ?, ?, ?, ?) "
                "RETURNING ordinal, owner",
                (session_id, created.owner, head, in_turn or 0, records[0].at),
            )
        else:
            row = file.execute(
                "UPDATE sessions SET head = ?, in_turn = coalesce(?, in_turn) WHERE session_id = ? "
                "RETURNING ordinal, owner",
                (head, in_turn, session_id),
            )
        found: tuple[int, str] | None = row.fetchone()
        return found


def remove_session(file: sqlite3.Connection, session_id: str) -> tuple[str, int] | None:
    """Remove a session; return its owner and how many bytes it had, None if there is no such session."""
    removal = "DELETE FROM sessions WHERE session_id = ? RETURNING ordinal, owner, summary"
    row = file.execute(removal, (session_id,)).fetchone()
    if row is None:
        return None
    ordinal, owner, summary = row
    leave_lists(file, ordinal, owner, summary)
    forget_texts(file, ordinal)
    [size] = file.execute(f"{SELECT_BYTES} WHERE session = ?", (ordinal,)).fetchone()
    file.execute("DELETE FROM segments WHERE session = ?", (ordinal,))
    file.execute("DELETE FROM places WHERE session = ?", (ordinal,))
    add_to_counter(file, f"{BYTES_COUNTER}:{owner}", -size)
    return owner, size


def usage_by_owner(file: sqlite3.Connection) -> list[tuple[str, int, int]]:
    """Each owner, with the number of their sessions and bytes."""
    rows = file.execute("SELECT owner, count(*) FROM sessions GROUP BY owner").fetchall()
    return [(owner, sessions, add_to_counter(file, f"{BYTES_COUNTER}:{owner}")) for owner, sessions in rows]


def count_stored_bytes(file: sqlite3.Connection) -> None:
    """Count the bytes of a file that was written before bytes were counted."""
    everybody = [owner for (owner,) in file.execute("SELECT DISTINCT owner FROM sessions")]
    for owner in everybody:
        [size] = file.execute(f"{SELECT_BYTES} JOIN sessions ON session = ordinal WHERE owner = ?", (owner,)).fetchone()
        name = f"{BYTES_COUNTER}:{owner}"
        add_to_counter(file, name, size - add_to_counter(file, name))
    add_to_counter(file, BYTES_COUNTER, 1)


def _read(
    file: sqlite3.Connection, session_id: str, after: int, limit: int | None, seal: Seal,
) -> list[m.Record]:
    rows = file.execute(
        "SELECT spine, words FROM segments WHERE session = (SELECT ordinal FROM sessions WHERE session_id = ?) "
        "AND last > ? ORDER BY last", (session_id, after),
    )
    found: list[m.Record] = []
    for spine, words in rows:
        records = unseal_records(decode_lines(spine), seal)
        if words:
            records += decode_lines(words)
            records.sort(key=_seq)
        found += records if records[0].seq > after else [record for record in records if record.seq > after]
        if limit is not None and len(found) >= limit:
            return found[:limit]
    return found


def _read_spine(
    file: sqlite3.Connection, session_id: str, after: int, upto: int | None, seal: Seal,
) -> list[m.Record]:
    """The records between two places without the deltas, which are not read from the file."""
    rows = file.execute(
        "SELECT last, spine FROM segments WHERE session = (SELECT ordinal FROM sessions WHERE session_id = ?) "
        "AND last > ? ORDER BY last", (session_id, after),
    )
    found: list[m.Record] = []
    for last, spine in rows:
        found += decode_lines(spine)
        if upto is not None and last >= upto:
            break
    return unseal_records(records_between(found, after, upto), seal)


def _seq(record: m.Record) -> int:
    return record.seq
