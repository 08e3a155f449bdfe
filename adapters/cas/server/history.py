"""The events of a session as a list that is paged in both directions, and where a stream begins in it."""

from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from msgspec.structs import replace

import gateway.model as m
from adapters.cas.wire import CasSettings
from gateway.errors import Invalid, NotFound
from gateway.http import Context
from gateway.json_values import EncodedArray
from gateway.ports import Chunk
from gateway.time_slices import SLICE_BYTES, next_slice

from .frame_writer import ListedFrame
from .stream_options import StreamOptions

PLACES_PER_RECORD = 256
"""More events than one record can make."""
RECORDS_AT_ONCE = 1000
"""How many records are read at once, at least, for a page that goes backward."""
PREVIEWED_EVENTS = (m.MessageStarted, m.BlockStarted, m.BlockDelta, m.BlockEnded, m.MessageEnded)
"""The events of a message in progress, of which clients may see previews."""


class ListedEvent(NamedTuple):
    """One event and its place in the list: its id, its type, the time that it shows, and its JSON."""

    place: int
    id: str
    type: str = ""
    at: float = 0.0
    body: bytes = b""


class EventPosition(NamedTuple):
    """Where a cursor stands: its place in the list, its record, and whether it is the last event of its record."""

    place: int
    seq: int
    is_last: bool = True
    in_progress: bool = False


@dataclass(frozen=True, slots=True)
class EventHistory:
    """The events of one session for one reader, made from the log by the projector of its stream."""

    context: Context[CasSettings]
    owner: str
    view: m.SessionView
    reading: StreamOptions

    # -- a list ---------------------------------------------------------------------------------------------------

    async def fetch(
        self, *, after: int | None, before: int | None, limit: int, oldest_first: bool
    ) -> Sequence[ListedEvent]:
        """Up to so many events between two places."""
        low, high = after or 0, before or (self.view.head + 1) * PLACES_PER_RECORD
        found: list[ListedEvent] = []
        walk = self._forward if oldest_first else self._backward
        async for event in walk(low // PLACES_PER_RECORD, high // PLACES_PER_RECORD):
            if low < event.place < high:
                found.append(event)
                if len(found) == limit:
                    break
        return found

    async def _forward(self, low: int, high: int) -> AsyncIterator[ListedEvent]:
        async for chunk in self._chunks(max(0, low - 1), min(high, self.view.head)):
            for event in events_of(chunk):
                yield event

    async def _backward(self, low: int, high: int) -> AsyncIterator[ListedEvent]:
        """Some turns at a time, so that the last page of a long history costs no more than its last turns."""
        end = min(high, self.view.head)
        while end and end >= low:
            begin = self.view.turn_start(max(0, end - RECORDS_AT_ONCE))
            chunks = [chunk async for chunk in self._chunks(begin, end)]
            for chunk in reversed(chunks):
                for event in reversed(events_of(chunk)):
                    yield event
            end = begin

    async def _chunks(self, after: int, upto: int) -> AsyncIterator[Chunk]:
        options, size = replace(self.reading, as_list=True, deltas=(), raw=False), 0
        async for chunk in await self.context.sessions.read(
            self.owner, self.view.session_id, self.context.dialect, options, after=after, upto=upto,
        ):
            size += sum([len(frame.body) for frame in chunk.frames])
            if size > SLICE_BYTES:
                await next_slice()
                size = 0
            yield chunk

    # -- a cursor -------------------------------------------------------------------------------------------------

    async def find(self, event_id: str) -> ListedEvent:
        return ListedEvent((await self.found(event_id)).place, event_id)

    async def found(self, event_id: str) -> EventPosition:
        """The position of the event with this id; raises `NotFound` if this reader does not see such an event."""
        stem, _, piece = event_id.partition("-")
        seq = m.seq_of_event(self.view.session_id, stem)
        if seq is None or not 1 <= seq <= self.view.head:
            raise NotFound(event_id)
        [record] = await self.context.sessions.records(self.owner, self.view.session_id, seq - 1, 1)
        if piece.startswith("p") and isinstance(record.event, PREVIEWED_EVENTS) and record.scope_id == self._own_scope:
            return EventPosition(seq * PLACES_PER_RECORD - 1, is_last=False, seq=seq)
        is_block = isinstance(record.event, m.BlockStarted)
        async for chunk in self._chunks(seq - 1, self._end_of_turn(seq) if is_block else seq):
            events = events_of(chunk)
            places = [one.place for one in events if one.id == event_id]
            if places:
                return EventPosition(places[0], is_last=places[0] == events[-1].place, seq=chunk.seq)
        if is_block and self._in_progress(record):
            return EventPosition(seq * PLACES_PER_RECORD, in_progress=True, seq=seq)
        raise NotFound(event_id)

    def _end_of_turn(self, seq: int) -> int:
        starts = self.view.turn_starts
        place = bisect_right(starts, seq)
        return starts[place] if place < len(starts) else self.view.head

    def _in_progress(self, record: m.Record) -> bool:
        """Whether the turn of the record still runs, so that the event of its block may not be sent yet."""
        runs = record.turn_id is not None and record.turn_id == self.view.turn_id
        return runs and record.scope_id == self._own_scope

    @property
    def _own_scope(self) -> str:
        """The scope whose text this reader gets: that of its thread, or the root scope."""
        return self.reading.thread or m.ROOT

    async def resumed(self, event_id: str | None) -> tuple[int, StreamOptions]:
        """The record after which a stream resumes that has received this event, and the options from there on."""
        if event_id is None:
            return 0, self.reading
        try:
            found = await self.found(event_id)
        except NotFound:
            raise Invalid(f"'{event_id[:128]}' is not an event of this stream", param="after_id") from None
        if found.in_progress:
            return found.seq, replace(self.reading, muted=(found.seq, self.view.head))
        if found.is_last:
            return found.seq, self.reading
        return found.seq - 1, replace(self.reading, past=(found.seq, event_id))

    async def of_records(self, records: Sequence[m.Record]) -> EncodedArray:
        """The events of these records."""
        seqs = [record.seq for record in records]
        return EncodedArray([
            frame.body async for chunk in self._chunks(seqs[0] - 1, seqs[-1])
            if seqs[bisect_left(seqs, chunk.seq)] == chunk.seq for frame in chunk.frames
        ])


def events_of(chunk: Chunk) -> list[ListedEvent]:
    """The events of one record, in the order of the list."""
    first = chunk.seq * PLACES_PER_RECORD
    return [
        ListedEvent(first + number, str(frame.cursor), frame.name, frame.at, frame.body)
        for number, frame in enumerate(cast(Sequence[ListedFrame], chunk.frames))
    ]


START_MODES = ("turn", "tail", "replay")
MAX_STREAMS = 100_000
"""How many streams' places are remembered; the oldest are forgotten first."""
ThreadKey = tuple[str, str | None]
"""A session and, where one thread of it is read, the thread's scope."""


class StreamStart:
    """Remembers how far the streams of each session have come; events from before the server started count as sent."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        self._carried: dict[ThreadKey, int] = {}

    async def after(self, view: m.SessionView, thread: str | None, start: str | None) -> int:
        """The record after which a stream without a cursor begins; `start` is the `stream_start` of the request."""
        way = start or self._context.settings.stream_start
        if way not in START_MODES:
            raise Invalid(f"stream_start: say 'turn', 'tail' or 'replay', not '{way[:64]}'", param="stream_start")
        if way == "replay":
            return 0
        if way == "tail" or not view.turn_starts or await self._is_carried(view, thread):
            return view.head
        carried = self._carried.get((view.session_id, thread), 0)
        return max((stop for stop in view.stops if stop < view.turn_starts[-1] or stop <= carried), default=0)

    async def _is_carried(self, view: m.SessionView, thread: str | None) -> bool:
        """Whether a stream has carried the last turn up to its end or its pause."""
        if view.status is m.SessionStatus.RUNNING or not view.stops:
            return False
        carried = self._carried.get((view.session_id, thread))
        if carried is not None:
            return carried >= view.stops[-1]
        if view.status is m.SessionStatus.SUSPENDED:
            return False
        last = await self._context.sessions.records(view.owner, view.session_id, view.stops[-1] - 1, 1)
        return bool(last) and last[0].at < self._context.started_at  # else its end was streamed just now

    def on_write(self, session_id: str, thread: str | None) -> Callable[[int], None]:
        """The callback of a stream, which calls it with the number of the last record that it has written."""
        key = session_id, thread

        def take(seq: int) -> None:
            self._carried[key] = max(seq, self._carried.pop(key, 0))
            if len(self._carried) > MAX_STREAMS:
                del self._carried[next(iter(self._carried))]

        return take
