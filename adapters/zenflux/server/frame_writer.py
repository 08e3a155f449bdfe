"""The frames of one run, numbered and stamped; and the throttle that merges deltas which follow each other quickly."""

from hashlib import sha256
from typing import Any, NamedTuple

import gateway.model as m
from gateway.ports import Frames
from mappings.language import FrameEncoder

FRAME_NAMES = ("out_seq", "uuid", "stamp", "run_id", "reply_id")
"""The names that are bound for every frame."""


class FrameWriter:
    """Writes cues and events of the run that was begun last; a frame's number in the run is its cursor.

    `reply_id` is the message that is open, if one is.
    """

    def __init__(self, encoder: FrameEncoder) -> None:
        self._encoder = encoder
        self._stem = ""
        self._count = 0
        self.run_id = ""
        self.reply_id: str | None = None

    def begin(self, run_id: str, framing: str) -> None:
        self.run_id, self.reply_id, self._count = run_id, None, 0
        self._stem = _uuid_stem(f"{run_id} {framing}")

    def cue(self, name: str, record: m.Record, at: float, **names: Any) -> Frames:
        frames = self._encoder.cue(name, record, self._bound(at, names), self._count + 1)
        self._count += len(frames)
        return frames

    def delta(self, record: m.Record, index: int, text: str, at: float) -> Frames:
        """The cue of a delta, with fewer calls: nine frames of ten are deltas."""
        number = self._count = self._count + 1
        return self._encoder.cue("words", record, {
            "index": index, "text": text, "out_seq": number, "uuid": f"{self._stem}{number:012x}", "stamp": at,
            "run_id": self.run_id, "reply_id": self.reply_id,
        }, number)

    def event(self, record: m.Record, **names: Any) -> Frames:
        frames = self._encoder.record(record, self._bound(record.at, names), self._count + 1)
        self._count += len(frames)
        return frames

    def _bound(self, at: float, names: dict[str, Any]) -> dict[str, Any]:
        number = names["out_seq"] = self._count + 1
        names["uuid"] = f"{self._stem}{number:012x}"
        names["stamp"], names["run_id"], names["reply_id"] = at, self.run_id, self.reply_id
        return names


def _uuid_stem(run: str) -> str:
    """All of a UUID but its last twelve digits, which count: ids come from records, so that replay repeats them."""
    digits = sha256(run.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-8{digits[15:18]}-"


class MergedDelta(NamedTuple):
    """What is to be said now: words of one block, and when they were due."""

    block: int
    text: str
    at: float


class DeltaThrottle:
    """Lets the first words of a block pass at once, and those that follow every so many seconds.

    Nothing is reordered, nothing is merged across blocks, nothing is lost. What was held back is stamped with the time
    when it was due, so that a reader that is told later hears the same as one that was told by a timer.
    """

    __slots__ = ("_held", "_index", "_open_at", "_seconds", "deadline")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._index = -1
        self._held: list[str] = []
        self._open_at = 0.0
        self.deadline: float | None = None
        """When what is held back is due."""

    def take(self, index: int, text: str, at: float) -> list[MergedDelta]:
        """What can be said once these words have come."""
        said = self.due(at)
        if index != self._index:
            said += self.release(at)
            self._index, self._open_at = index, at
        if self._held or at < self._open_at:
            self._held.append(text)
            self.deadline = self._open_at
        else:
            self._open_at = at + self._seconds
            said.append(MergedDelta(index, text, at))
        return said

    def due(self, now: float) -> list[MergedDelta]:
        """What was held back, if its time has come."""
        return self.release(self.deadline) if self.deadline is not None and self.deadline <= now else []

    def release(self, at: float) -> list[MergedDelta]:
        """What was held back, because something else is about to be said."""
        if self.deadline is None:
            return []
        merged = MergedDelta(self._index, "".join(self._held), min(at, self.deadline))
        self._held, self.deadline = [], None
        self._open_at = merged.at + self._seconds
        return [merged]
