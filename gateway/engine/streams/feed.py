"""The live end of one session: the records of late, and who waits for the next."""

import asyncio
from collections.abc import Sequence

import gateway.model as m

from .channel import Channel

WINDOW = 2048
"""How many records are kept ready for those who read along."""


class Feed:
    """What all who watch one session share, whatever their dialect."""

    def __init__(self, session_id: str, head: int) -> None:
        self.session_id = session_id
        self.head = head
        self.over = False
        self.end: m.Record | None = None
        """The record that closed the session."""
        self.is_cut = False
        """Whether what comes next cannot be told here: who watches is cut, and may ask again."""
        self.records: list[m.Record] = []
        self.channels: dict[tuple[str, str], Channel] = {}
        self.subscribers = 0
        self.waiters: dict[asyncio.Future[None], None] = {}

    @property
    def first(self) -> int:
        """The number of the oldest record still at hand."""
        return self.head - len(self.records) + 1

    def publish(self, records: Sequence[m.Record]) -> None:
        self.records.extend(records)
        self.head = records[-1].seq
        self.over = type(records[-1].event) is m.SessionClosed
        self.end = records[-1] if self.over else None
        keep = max(WINDOW, len(records))  # what comes at once is read at once, however much it is
        if len(self.records) > 2 * keep:
            del self.records[:-keep]
        if self.waiters:
            self.wake()

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            wake(waiter)

    def since(self, seq: int) -> Sequence[m.Record] | None:
        """The records after that one; None if they are no longer all at hand."""
        return None if seq + 1 < self.first else self.records[seq + 1 - self.first:]


def wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
