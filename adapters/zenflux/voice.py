"""Frames of one run, numbered and stamped: 1, 2, 3 … in the frame and in its envelope alike."""

from hashlib import sha256
from typing import Any

from gateway.model import Record
from mappings.language import Speaker

Frames = tuple[bytes, ...]
SILENCE: Frames = ()

NAMES = ("out_seq", "uuid", "stamp", "run_id", "reply_id")
"""What is bound for every frame."""


class Voice:
    """Says cues and events of the run that was begun last; `reply_id` is the message that is open, if one is."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._stem = ""
        self._count = 0
        self.run_id = ""
        self.reply_id: str | None = None

    def begin(self, run_id: str, framing: str) -> None:
        self.run_id, self.reply_id, self._count = run_id, None, 0
        self._stem = _stem(f"{run_id} {framing}")

    def cue(self, name: str, record: Record, at: float, **names: Any) -> Frames:
        frames = self._speaker.cue(name, record, self._bound(at, names))
        self._count += len(frames)
        return frames

    def words(self, record: Record, index: int, text: str, at: float) -> Frames:
        """Nine frames of ten, the short way."""
        number = self._count = self._count + 1
        return self._speaker.cue("words", record, {
            "index": index, "text": text, "out_seq": number, "uuid": f"{self._stem}{number:012x}", "stamp": at,
            "run_id": self.run_id, "reply_id": self.reply_id,
        })

    def event(self, record: Record, **names: Any) -> Frames:
        frames = self._speaker.record(record, self._bound(record.at, names))
        self._count += len(frames)
        return frames

    def _bound(self, at: float, names: dict[str, Any]) -> dict[str, Any]:
        number = names["out_seq"] = self._count + 1
        names["uuid"] = f"{self._stem}{number:012x}"
        names["stamp"], names["run_id"], names["reply_id"] = at, self.run_id, self.reply_id
        return names


def _stem(run: str) -> str:
    """All of a UUID but its last twelve digits, which count: ids come from records, so that replay repeats them."""
    digits = sha256(run.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-8{digits[15:18]}-"
