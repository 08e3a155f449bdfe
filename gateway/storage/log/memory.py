"""The log in memory: a list of records per session, which are stored as soon as they are appended."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ports import NO_LISTENER, ListedSession, ListOrder, LogListener, SessionHead
from gateway.quotas import Quotas
from gateway.search_terms import keyword_terms
from gateway.time_slices import next_slice

from .session_texts import MemorySessionTexts, terms_in_slices

MAX_LOOKUP_IDS = 100_000
"""How many ids of turns and asks are kept; the oldest are dropped first."""
LAST_ORDINAL = 2**63
"""Higher than the ordinal of any session."""


def _by_creation(row: ListedSession) -> tuple[float, int]:
    return 0.0, row.ordinal


def _by_change(row: ListedSession) -> tuple[float, int]:
    return row.summary.updated_at, row.ordinal


class OrderedRows:
    """Rows in the order of a key. Nearly every row that comes has the highest key; the others are sorted when asked."""

    def __init__(self, key: Callable[[ListedSession], tuple[float, int]]) -> None:
        self._key = key
        self._rows: dict[int, ListedSession] = {}
        self._highest = (0.0, 0)
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: ListedSession) -> None:
        """Add the row, or put it in the place of the one that the session had."""
        old, key = self._rows.get(row.ordinal), self._key(row)
        if old is None or self._key(old) != key:
            self._rows.pop(row.ordinal, None)
            self._is_sorted = self._is_sorted and key >= self._highest
            self._highest = max(self._highest, key)
        self._rows[row.ordinal] = row

    def remove(self, ordinal: int) -> None:
        self._rows.pop(ordinal, None)

    def highest_first(self) -> Iterator[ListedSession]:
        if not self._is_sorted:
            self._rows = {row.ordinal: row for row in sorted(self._rows.values(), key=self._key)}
            self._is_sorted = True
        return reversed(self._rows.values())


class SessionList:
    """The sessions of one owner that have one label."""

    def __init__(self) -> None:
        self._orders: dict[ListOrder, OrderedRows] = {
            "created": OrderedRows(_by_creation), "updated": OrderedRows(_by_change)}

    def __len__(self) -> int:
        return len(self._orders["created"])

    def put(self, row: ListedSession) -> None:
        for rows in self._orders.values():
            rows.put(row)

    def remove(self, ordinal: int) -> None:
        for rows in self._orders.values():
            rows.remove(ordinal)

    def newest_first(self, order: ListOrder) -> Iterator[ListedSession]:
        return self._orders[order].highest_first()


class MemorySessionLists:
    """All lists, and the summary of each session. A change reaches the lists when somebody asks for one of them."""

    def __init__(self) -> None:
        self._summaries: dict[str, m.SessionSummary] = {}
        self._listed: dict[str, m.SessionSummary] = {}
        """The summaries that the lists have."""
        self._changed: dict[str, tuple[str, int]] = {}
        """The owner and the ordinal of each session that has another summary since."""
        self._lists: dict[tuple[str, str], SessionList] = {}

    def take(self, owner: str, ordinal: int, record: m.Record) -> None:
        """Change the summary of the session by a record."""
        session_id = record.session_id
        summary = m.summarize(self._summaries.get(session_id), (record,))
        if summary is not None:
            self._summaries[session_id] = summary
            self._changed[session_id] = (owner, ordinal)

    def remove(self, owner: str, ordinal: int, session_id: str) -> None:
        self._summaries.pop(session_id, None)
        self._changed.pop(session_id, None)
        listed = self._listed.pop(session_id, None)
        for label in listed.labels if listed is not None else ():
            self._drop(owner, label, ordinal)

    def _bring_up_to_date(self) -> None:
        """Put the sessions that have changed where they belong."""
        for session_id, (owner, ordinal) in self._changed.items():
            old, new = self._listed.get(session_id), self._summaries[session_id]
            self._listed[session_id] = new
            row = ListedSession(session_id=session_id, ordinal=ordinal, summary=new)
            for label in set(old.labels).difference(new.labels) if old is not None else ():
                self._drop(owner, label, ordinal)
            for label in new.labels:
                self._lists.setdefault((owner, label), SessionList()).put(row)
        self._changed.clear()

    def _drop(self, owner: str, label: str, ordinal: int) -> None:
        found = self._lists.get((owner, label))
        if found is not None:
            found.remove(ordinal)
            if not found:
                del self._lists[owner, label]

    def row(self, session_id: str, ordinal: int) -> ListedSession | None:
        """The row of one session; None as long as it was not created."""
        summary = self._summaries.get(session_id)
        return None if summary is None else ListedSession(session_id=session_id, ordinal=ordinal, summary=summary)

    def page(self, owner: str, label: str, order: ListOrder, offset: int, limit: int) -> list[ListedSession]:
        self._bring_up_to_date()
        found = self._lists.get((owner, label))
        return [] if found is None else list(islice(found.newest_first(order), offset, offset + limit))

    def count(self, owner: str, label: str) -> int:
        self._bring_up_to_date()
        return len(self._lists.get((owner, label), ()))


class MemoryLog:
    """Everything in memory, nothing on disk."""

    write_error: GatewayError | None = None

    def __init__(self, most_places: int = MAX_LOOKUP_IDS, tally: Quotas | None = None) -> None:
        self._listener: LogListener = NO_LISTENER
        self._records: dict[str, list[m.Record]] = {}
        self._heads: dict[str, SessionHead] = {}
        self._ordinals: dict[str | None, list[int]] = {None: []}
        self._created: dict[str, list[tuple[float, int]]] = {}
        """By owner: when each session was created, and its ordinal."""
        self._by_ordinal: dict[int, SessionHead] = {}
        self._count = count(1)
        self._in_turn: dict[str, None] = {}
        self._places: dict[str, str] = {}
        self._most_places = most_places
        self._tally = tally or Quotas()
        self._lists = MemorySessionLists()
        self._texts = MemorySessionTexts()

    def attach(self, listener: LogListener) -> None:
        assert self._listener is NO_LISTENER, "a log has one listener"
        self._listener = listener

    def error_of(self, session_id: str) -> GatewayError | None:
        return self.write_error

    async def open(self) -> None:
        """Nothing to prepare."""

    @property
    def session_count(self) -> int:
        return len(self._records)

    def append(self, record: m.Record) -> None:
        records = self._records.get(record.session_id)
        if records is None:
            records = self._enrol(record)
        records.append(record)
        if type(record.event) is not m.BlockDelta:
            self._note(record)
        self._listener.committed((record,))

    def append_deltas(self, records: Sequence[m.Record]) -> None:
        self._records[records[0].session_id].extend(records)
        self._listener.committed(records)

    def _note(self, record: m.Record) -> None:
        event = record.event
        kind = type(event)
        if kind is m.TurnStarted:
            self._in_turn[record.session_id] = None
            self._remember(record.turn_id or "", record.session_id)
        elif kind is m.TurnEnded:
            self._in_turn.pop(record.session_id, None)
        elif isinstance(event, m.InputRequested):
            self._remember(event.request_id, record.session_id)
        if kind in m.SUMMARY_EVENTS:
            head = self._heads[record.session_id]
            self._lists.take(head.owner, head.ordinal, record)
            self._texts.changed(head)

    def _remember(self, word: str, session_id: str) -> None:
        self._places[word] = session_id
        if len(self._places) > self._most_places:
            del self._places[next(iter(self._places))]

    def _enrol(self, record: m.Record) -> list[m.Record]:
        owner = record.event.owner if isinstance(record.event, m.SessionCreated) else ""
        head = SessionHead(session_id=record.session_id, owner=owner, ordinal=next(self._count))
        self._heads[head.session_id] = self._by_ordinal[head.ordinal] = head
        self._tally.add(owner, sessions=1)
        insort(self._created.setdefault(owner, []), (record.at, head.ordinal))
        for index in (owner, None):
            self._ordinals.setdefault(index, []).append(head.ordinal)
        return self._records.setdefault(record.session_id, [])

    async def wait_stored(self, session_id: str, seq: int) -> None:
        """Every record is stored when it is appended."""

    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[m.Record]:
        records = self._records.get(session_id, [])
        return records[after:] if limit is None else records[after:after + limit]

    async def read_without_deltas(
        self, session_id: str, after: int = 0, upto: int | None = None,
    ) -> Sequence[m.Record]:
        records = self._records.get(session_id, [])[after:upto]
        return [record for record in records if type(record.event) is not m.BlockDelta]

    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        ordinals = self._ordinals.get(owner, [])
        start = 0 if after is None else bisect_right(ordinals, after)
        end = len(ordinals) if before is None else bisect_left(ordinals, before)
        oldest, newest = ordinals[start:min(end, start + limit)], ordinals[max(start, end - limit):end]
        found = oldest if oldest_first else reversed(newest)
        return [self._now(self._by_ordinal[ordinal]) for ordinal in found]

    async def listed(
        self, owner: str, label: str, order: ListOrder, *, offset: int = 0, limit: int = 50,
    ) -> Sequence[ListedSession]:
        return self._lists.page(owner, label, order, offset, limit)

    async def mentioning(self, owner: str, text: str) -> Sequence[ListedSession] | None:
        wanted = keyword_terms(text)
        if not wanted:
            return None
        for session_id, after in self._texts.unindexed(owner):
            head, records = self._heads.get(session_id), self._records.get(session_id)
            if head is not None and records is not None and session_id not in self._in_turn:
                upto = len(records)
                terms = await terms_in_slices(records[after:upto])
                if session_id in self._heads:
                    self._texts.add(head, after, upto, terms, is_all=upto == len(records))
                await next_slice()
        in_turn = [head.ordinal for name in self._in_turn if (head := self._heads[name]).owner == owner]
        ordinals = {ordinal for ordinal in self._texts.ordinals_with(owner, wanted) if ordinal in self._by_ordinal}
        found = [self._by_ordinal[ordinal] for ordinal in sorted({*ordinals, *in_turn}, reverse=True)]
        return [row for head in found if (row := self._lists.row(head.session_id, head.ordinal)) is not None]

    async def created_between(self, owner: str, first: float, last: float, limit: int) -> Sequence[ListedSession]:
        times = self._created.get(owner, [])
        start, end = bisect_left(times, (first, 0)), bisect_right(times, (last, LAST_ORDINAL))
        found = [self._by_ordinal[ordinal] for _, ordinal in times[start:min(end, start + limit)]]
        return [row for head in found if (row := self._lists.row(head.session_id, head.ordinal)) is not None]

    async def count_listed(self, owner: str, label: str) -> int:
        return self._lists.count(owner, label)

    async def sessions_in_turn(self, owner: str | None = None) -> Sequence[SessionHead]:
        heads = [self._now(self._heads[session_id]) for session_id in self._in_turn]
        return [head for head in heads if owner is None or head.owner == owner]

    async def head(self, session_id: str) -> SessionHead | None:
        head = self._heads.get(session_id)
        return None if head is None else self._now(head)

    def _now(self, head: SessionHead) -> SessionHead:
        return SessionHead(
            session_id=head.session_id, owner=head.owner, ordinal=head.ordinal,
            head=self._records[head.session_id][-1].seq, in_turn=head.session_id in self._in_turn,
        )

    async def session_of(self, word: str) -> str | None:
        session_id = self._places.get(word)
        return session_id if session_id in self._records else None

    async def delete_session(self, session_id: str) -> None:
        head = self._heads.pop(session_id, None)
        if head is None:
            return
        times = self._created[head.owner]
        del times[bisect_left(times, (self._records[session_id][0].at, head.ordinal))]
        del self._records[session_id], self._by_ordinal[head.ordinal]
        self._in_turn.pop(session_id, None)
        self._tally.add(head.owner, sessions=-1)
        self._lists.remove(head.owner, head.ordinal, session_id)
        self._texts.remove(head)
        for index in (head.owner, None):
            ordinals = self._ordinals[index]
            del ordinals[bisect_left(ordinals, head.ordinal)]

    async def close(self) -> None:
        """Nothing to close."""
