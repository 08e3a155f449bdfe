"""Several columns of one session as one stream of server-sent events, which can be resumed at its last id.

The id of an event has the position of every column, in the order in which the client has named them: the number of the
last record, and after a `+` how many times a timer has released frames after that record.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import NamedTuple

import gateway.model as m
from gateway.errors import Invalid
from gateway.http import dumps
from gateway.ports import Chunk, Frame, SessionService, StreamOptions, Subscription

from .columns import COLUMN_PREFIX, RECORDS, ConsoleColumns

RECORDS_COLUMN = "records"
MAX_COLUMNS = 12
_POSITION = re.compile(r"([0-9]{1,15})(?:\+([0-9]{1,6}))?", re.ASCII)


class ColumnPosition(NamedTuple):
    """The last record of a column that the client has had, and how many releases of a timer after it."""

    seq: int = 0
    flushes: int = 0

    def __str__(self) -> str:
        return f"{self.seq}+{self.flushes}" if self.flushes else str(self.seq)

    @classmethod
    def read(cls, text: str) -> "ColumnPosition":
        found = _POSITION.fullmatch(text)
        if found is None:
            raise Invalid(f"Last-Event-ID: '{text[:80]}' is no position of a column", param="Last-Event-ID")
        return cls(int(found[1]), int(found[2] or 0))


def read_columns(given: str, known: Sequence[str]) -> list[str]:
    """The names of columns, separated by commas: `records` and dialects."""
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name != RECORDS_COLUMN and name not in known:
            raise Invalid(f"columns: there is no column '{name[:80]}'; there are {', '.join((RECORDS_COLUMN, *known))}",
                          param="columns")
    if not names or len(set(names)) != len(names) or len(names) > MAX_COLUMNS:
        raise Invalid(f"columns: name 1 to {MAX_COLUMNS} different columns", param="columns")
    return names


def read_positions(last_event_id: str | None, columns: Sequence[str], after: int) -> list[ColumnPosition]:
    """Where each column begins: after the last event that the client has had, else after a record."""
    if not last_event_id:
        return [ColumnPosition(after)] * len(columns)
    found = [ColumnPosition.read(part) for part in last_event_id.split(".", MAX_COLUMNS)]
    if len(found) != len(columns):
        raise Invalid(f"Last-Event-ID: it has {len(found)} positions, and there are {len(columns)} columns",
                      param="Last-Event-ID")
    return found


def stream_of_column(column: str) -> str:
    """The name under which the hub knows a column."""
    return RECORDS if column == RECORDS_COLUMN else f"{COLUMN_PREFIX}{column}"


def options_of_column(column: str, columns: ConsoleColumns, view: m.SessionView) -> StreamOptions:
    return StreamOptions() if column == RECORDS_COLUMN else columns.options(column, view)


class ColumnSubscription:
    """Several subscriptions as one; each of them is one subscriber of the session, as any client is."""

    def __init__(self, subscriptions: Sequence[Subscription], positions: Sequence[ColumnPosition]) -> None:
        self._subscriptions = subscriptions
        self._positions = list(positions)
        self._waits: dict[asyncio.Task[Sequence[Chunk]], int] = {}
        self._is_over = False

    @property
    def cut_at(self) -> int | None:
        return next((one.cut_at for one in self._subscriptions if one.cut_at is not None), None)

    @property
    def is_draining(self) -> bool:
        return any(one.is_draining for one in self._subscriptions)

    async def chunks(self) -> Sequence[Chunk]:
        """The events of the columns that have some; at the end an event that says why the stream ends."""
        if self._is_over:
            return ()
        if not self._waits:
            self._waits = {self._next(at): at for at in range(len(self._subscriptions))}
        while self._waits:
            done, _ = await asyncio.wait(self._waits, return_when=asyncio.FIRST_COMPLETED)
            events = list[Frame]()
            for task in done:
                at = self._waits.pop(task)
                if chunks := task.result():
                    events += self._events(at, chunks)
                    self._waits[self._next(at)] = at
            if self.cut_at is not None:
                break
            if events:
                return (Chunk(self._positions[0].seq, tuple(events), False),)
        self._is_over = True
        return (Chunk(self._positions[0].seq, (self._end(),), False),)

    def cut(self) -> None:
        for one in self._subscriptions:
            one.cut()

    def close(self) -> None:
        for task in self._waits:
            task.cancel()
        for one in self._subscriptions:
            one.close()

    def _next(self, at: int) -> asyncio.Task[Sequence[Chunk]]:
        return asyncio.ensure_future(_read(self._subscriptions[at]))

    def _events(self, at: int, chunks: Sequence[Chunk]) -> list[Frame]:
        """The items of a column as server-sent events, without releases that the client has had."""
        found = []
        for chunk in chunks:
            for frame in chunk.frames:
                position = ColumnPosition.read(str(frame.cursor))
                if position <= self._positions[at]:
                    continue
                self._positions[at] = position
                id_ = ".".join(map(str, self._positions))
                found.append(Frame(
                    b"event: %b\nid: %b\ndata: %b\n\n" % (frame.name.encode(), id_.encode(), frame.body), frame.name))
        return found

    def _end(self) -> Frame:
        reason = "slow" if self.cut_at is not None else "restart" if self.is_draining else "closed"
        return Frame(b"event: end\ndata: %b\n\n" % dumps({"reason": reason}), "end")


async def _read(subscription: Subscription) -> Sequence[Chunk]:
    return list(await subscription.chunks())


async def subscribe_columns(
    sessions: SessionService, columns: ConsoleColumns, view: m.SessionView, names: Sequence[str],
    positions: Sequence[ColumnPosition],
) -> ColumnSubscription:
    """Subscribe to every column, or to none."""
    positions = [min(position, ColumnPosition(view.head)) for position in positions]
    made = list[Subscription]()
    try:
        for name, position in zip(names, positions, strict=True):
            made.append(await sessions.subscribe(
                view.owner, view.session_id, stream_of_column(name), options_of_column(name, columns, view),
                after=position.seq))
    except BaseException:
        for one in made:
            one.close()
        raise
    return ColumnSubscription(made, positions)
