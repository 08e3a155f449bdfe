"""Writes the frames of a run: numbers and stamps them, and merges deltas that follow one another quickly."""

from hashlib import sha256
from typing import NamedTuple

import gateway.model as m
from gateway.ports import NO_FRAMES, Frame, Frames, TableEncoder

FRAME_NAMES = ("out_seq", "uuid", "stamp", "run_id", "reply_id")
"""The names that are bound for every frame."""


class FrameWriter:
    """Writes the cues and events of the run that began last; the number of a frame in its run is its cursor.

    `reply_id` is the open message of the run, if there is one.
    """

    def __init__(self, encoder: TableEncoder, throttle: float = 0.0) -> None:
        self.throttle = DeltaThrottle(throttle)
        self.start: m.Record | None = None
        self.run_id = ""
        self.reply_id: str | None = None
        self._encoder = encoder
        self._stem = ""
        self._count = 0
        self._frames: list[Frame] = []

    def begin(self, start: m.Record, framing: str) -> None:
        self.start, self.run_id, self.reply_id, self._count = start, start.turn_id or "", None, 0
        self._stem = _uuid_stem(f"{self.run_id} {framing}")

    def end(self) -> None:
        self.start = None

    def cue(self, name: str, record: m.Record, **names: object) -> None:
        """Write a cue; deltas that were held back go first."""
        if self.throttle.deadline is not None:
            self._write_merged(self.throttle.release(record.at))
        frames = self._encoder.cue(name, record, self._bound(record.at, names), self._count + 1)
        self._count += len(frames)
        self._frames += frames

    def event(self, record: m.Record, **names: object) -> None:
        """Write the record's own event; deltas that were held back go first."""
        if self.throttle.deadline is not None:
            self._write_merged(self.throttle.release(record.at))
        frames = self._encoder.record(record, self._bound(record.at, names), self._count + 1)
        self._count += len(frames)
        self._frames += frames

    def delta(self, record: m.Record, index: int, text: str, at: float) -> Frames:
        """A delta that is not throttled, the short way: nine frames of ten."""
        number = self._count = self._count + 1
        return self._encoder.cue("words", record, {
            "index": index, "text": text, "out_seq": number, "uuid": f"{self._stem}{number:012x}", "stamp": at,
            "run_id": self.run_id, "reply_id": self.reply_id,
        }, number)

    def merge_delta(self, index: int, text: str, at: float) -> None:
        """Write a delta, or hold it back to be merged with those that follow."""
        if merged := self.throttle.take(index, text, at):
            self._write_merged(merged)

    def flush(self, now: float) -> None:
        """Write the deltas that were held back and are due."""
        if self.throttle.deadline is not None:
            self._write_merged(self.throttle.due(now))

    def take(self) -> Frames:
        """The frames that were written since the last call."""
        if not self._frames:
            return NO_FRAMES
        frames, self._frames = tuple(self._frames), []
        return frames

    def _write_merged(self, merged: "list[MergedDelta]") -> None:
        for index, text, at in merged:
            assert self.start is not None, "deltas come within a run"
            self._frames += self.delta(self.start, index, text, at)

    def _bound(self, at: float, names: dict[str, object]) -> dict[str, object]:
        number = names["out_seq"] = self._count + 1
        names["uuid"] = f"{self._stem}{number:012x}"
        names["stamp"], names["run_id"], names["reply_id"] = at, self.run_id, self.reply_id
        return names


def _uuid_stem(run: str) -> str:
    """A UUID without its last twelve digits, which count: ids come from records, so that a replay repeats them."""
    digits = sha256(run.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-8{digits[15:18]}-"


class MergedDelta(NamedTuple):
    """Text of one block, and when it was due."""

    block: int
    text: str
    at: float


class DeltaThrottle:
    """Lets the first delta of a block pass at once, and merges those that follow into one every so many seconds.

    Nothing is reordered, nothing is merged across blocks, nothing is lost. Text that was held back is stamped with the
    time when it was due, so that a client that replays it gets the same frames as one for which a timer flushed it.
    """

    __slots__ = ("_held", "_index", "_open_at", "_seconds", "deadline")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._index = -1
        self._held: list[str] = []
        self._open_at = 0.0
        self.deadline: float | None = None
        """When the text that is held back is due."""

    def take(self, index: int, text: str, at: float) -> list[MergedDelta]:
        """Take a delta in, and return the merged deltas that must be written now."""
        merged = self.due(at)
        if index != self._index:
            merged += self.release(at)
            self._index, self._open_at = index, at
        if self._held or at < self._open_at:
            self._held.append(text)
            self.deadline = self._open_at
        else:
            self._open_at = at + self._seconds
            merged.append(MergedDelta(index, text, at))
        return merged

    def due(self, now: float) -> list[MergedDelta]:
        """The text that was held back, if it is due."""
        return self.release(self.deadline) if self.deadline is not None and self.deadline <= now else []

    def release(self, at: float) -> list[MergedDelta]:
        """The text that was held back, because another frame is about to be written."""
        if self.deadline is None:
            return []
        merged = MergedDelta(self._index, "".join(self._held), min(at, self.deadline))
        self._held, self.deadline = [], None
        self._open_at = merged.at + self._seconds
        return [merged]
