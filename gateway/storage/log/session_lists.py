"""The lists of sessions of the log in memory: one for each owner and label, by creation and by the last change."""

from collections.abc import Callable, Iterator
from itertools import islice

import gateway.model as m
from gateway.ports import ListedSession, ListOrder


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

    def page(self, owner: str, label: str, order: ListOrder, offset: int, limit: int) -> list[ListedSession]:
        self._bring_up_to_date()
        found = self._lists.get((owner, label))
        return [] if found is None else list(islice(found.newest_first(order), offset, offset + limit))

    def count(self, owner: str, label: str) -> int:
        self._bring_up_to_date()
        return len(self._lists.get((owner, label), ()))
