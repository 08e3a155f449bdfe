"""The log that lives as long as the process: a list of records per session, safe as soon as taken."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import count

from gateway.model import Record, SessionCreated
from gateway.ports import OnCommit, SessionHead


class MemoryLog:
    """Everything in memory, nothing on disk."""

    def __init__(self) -> None:
        self.on_commit: OnCommit = lambda records: None
        self._records: dict[str, list[Record]] = {}
        self._heads: dict[str, SessionHead] = {}
        self._ordinals: dict[str | None, list[int]] = {None: []}
        self._by_ordinal: dict[int, SessionHead] = {}
        self._count = count(1)

    def append(self, record: Record) -> None:
        records = self._records.get(record.session_id)
        if records is None:
            records = self._enrol(record)
        records.append(record)
        self.on_commit((record,))

    def _enrol(self, record: Record) -> list[Record]:
        owner = record.event.owner if isinstance(record.event, SessionCreated) else ""
        head = SessionHead(session_id=record.session_id, owner=owner, ordinal=next(self._count))
        self._heads[head.session_id] = self._by_ordinal[head.ordinal] = head
        for index in (owner, None):
            self._ordinals.setdefault(index, []).append(head.ordinal)
        return self._records.setdefault(record.session_id, [])

    async def settled(self, session_id: str, seq: int) -> None:
        """What was taken is safe already."""

    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[Record]:
        records = self._records.get(session_id, [])
        return records[after:] if limit is None else records[after:after + limit]

    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        ordinals = self._ordinals.get(owner, [])
        start = 0 if after is None else bisect_right(ordinals, after)
        end = len(ordinals) if before is None else bisect_left(ordinals, before)
        if oldest_first:
            return [self._by_ordinal[ordinal] for ordinal in ordinals[start:min(end, start + limit)]]
        return [self._by_ordinal[ordinal] for ordinal in reversed(ordinals[max(start, end - limit):end])]

    async def head(self, session_id: str) -> SessionHead | None:
        return self._heads.get(session_id)

    async def forget(self, session_id: str) -> None:
        head = self._heads.pop(session_id, None)
        if head is None:
            return
        del self._records[session_id], self._by_ordinal[head.ordinal]
        for index in (head.owner, None):
            ordinals = self._ordinals[index]
            del ordinals[bisect_left(ordinals, head.ordinal)]

    async def close(self) -> None:
        """Nothing to put away."""
