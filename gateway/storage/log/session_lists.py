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
    """All lists, and the summary of each session."""

    def __init__(self) -> None:
        self._summaries: dict[str, m.SessionSummary] = {}
        self._lists: dict[tuple[str, str], SessionList] = {}

    def take(self, owner: str, ordinal: int, record: m.Record) -> None:
        """Change the summary of the session by a record, and its places in lists."""
        old = self._summaries.get(record.session_id)
        summary = m.summarize(old, (record,))
        if summary is None or summary == old:
            return
        self._summaries[record.session_id] = summary
        row = ListedSession(session_id=record.session_id, ordinal=ordinal, summary=summary)
        for label in set(old.labels).difference(summary.labels) if old is not None else ():
            self._drop(owner, label, ordinal)
        for label in summary.labels:
            self._lists.setdefault((owner, label), SessionList()).put(row)

    def remove(self, owner: str, ordinal: int, session_id: str) -> None:
        summary = self._summaries.pop(session_id, None)
        for label in summary.labels if summary is not None else ():
            self._drop(owner, label, ordinal)

    def _drop(self, owner: str, label: str, ordinal: int) -> None:
        found = self._lists.get((owner, label))
        if found is not None:
            found.remove(ordinal)
            if not found:
                del self._lists[owner, label]

    def page(self, owner: str, label: str, order: ListOrder, offset: int, limit: int) -> list[ListedSession]:
        found = self._lists.get((owner, label))
        return [] if found is None else list(islice(found.newest_first(order), offset, offset + limit))

    def count(self, owner: str, label: str) -> int:
        return len(self._lists.get((owner, label), ()))
