"""Projectors as they were after some records that were read from the log: a later reader begins there."""

from bisect import bisect_right
from collections import OrderedDict
from copy import deepcopy
from typing import NamedTuple

from gateway.ports import FramePlace, Projector, StreamKey

from .channel import Channel

MAX_STREAMS = 64
"""How many streams have snapshots; the one that was read longest ago is forgotten first."""
MAX_PER_STREAM = 32
"""How many snapshots a stream has; those of its earliest records are forgotten first."""


class Snapshot(NamedTuple):
    """A projector that has taken in the records up to `seq` and nothing else: no timer has released its frames."""

    seq: int
    projector: Projector
    origin: int
    frames: int
    """How many frames the records have after `origin`."""
    is_between_turns: bool

    def restore(self, channel: Channel) -> None:
        """Bring a new channel to this place."""
        channel.projector, channel.seq = deepcopy(self.projector), self.seq


class Snapshots:
    """The snapshots of all streams, by the session, the dialect and the options."""

    def __init__(self) -> None:
        self.streams: OrderedDict[tuple[str, StreamKey], list[Snapshot]] = OrderedDict()

    def add(
        self, session_id: str, key: StreamKey, channel: Channel, counted: FramePlace, *, is_between_turns: bool = False,
    ) -> None:
        """Keep the projector of a channel, of which `counted.had` frames come after the record `counted.after`."""
        kept = self.streams.setdefault((session_id, key), [])
        self.streams.move_to_end((session_id, key))
        if len(self.streams) > MAX_STREAMS:
            self.streams.popitem(last=False)
        place = bisect_right(kept, channel.seq, key=_seq)
        for snapshot in reversed(kept[:place]):
            if snapshot.seq < channel.seq:
                break
            if snapshot.origin == counted.after:
                return
        kept.insert(place, Snapshot(
            channel.seq, deepcopy(channel.projector), counted.after, counted.had, is_between_turns))
        del kept[:-MAX_PER_STREAM]

    def latest(
        self, session_id: str, key: StreamKey, turn_start: int, last: int, *, of_turn: bool,
    ) -> Snapshot | None:
        """The latest snapshot up to that record: one of a reader of this turn only, or of any reader of the session.

        One of an earlier turn is between two turns: from there on records can be read without deltas.
        """
        kept = self.streams.get((session_id, key), [])
        for snapshot in reversed(kept[:bisect_right(kept, last, key=_seq)]):
            if snapshot.origin >= turn_start if of_turn else snapshot.seq >= turn_start or snapshot.is_between_turns:
                return snapshot
        return None

    def counted(self, session_id: str, key: StreamKey, after: int) -> FramePlace:
        """From which record on frames are counted by a reader that begins after that one, and how many it has had."""
        for snapshot in self.streams.get((session_id, key), ()):
            if snapshot.seq == after and snapshot.origin < after:
                return FramePlace(snapshot.origin, snapshot.frames)
        return FramePlace(after, 0)

    def place(self, session_id: str, key: StreamKey, after: int, had: int) -> FramePlace:
        """The latest snapshot for a reader that has had so many frames of the records after `after`."""
        for snapshot in reversed(self.streams.get((session_id, key), ())):
            if snapshot.origin == after and snapshot.frames <= had:
                return FramePlace(snapshot.seq, had - snapshot.frames)
        return FramePlace(after, had)

    def forget(self, session_id: str) -> None:
        for stream in [stream for stream in self.streams if stream[0] == session_id]:
            del self.streams[stream]


def _seq(snapshot: Snapshot) -> int:
    return snapshot.seq
