"""Writes records as the frames of a dialect, or as records, and counts by feature what the tables lose."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import orjson

import gateway.model as m
from gateway.ports import Dialect, Frame, Frames, Framing, Projector
from gateway.storage.log import EXPORT_FORMAT, ExportHeader
from mappings.language import FEATURES, SupportLevel, Table, feature_of

LOST_LEVELS = (SupportLevel.DROPPED, SupportLevel.REJECTED)


class LossCounter:
    """Counts the losses of one translation; canonical records lose nothing, on either side."""

    def __init__(self, source: Table | None, target: Table | None) -> None:
        self._source, self._target = source, target
        self._counts: Counter[str] = Counter()

    def count(self, record: m.Record, frames: int) -> None:
        """The target has so many frames for this record."""
        if self._target is None or type(record.event) is m.BlockDelta:
            return
        feature = feature_of(record.event)
        if feature is None or (
            isinstance(record.event, m.TurnEnded) and record.event.stop_reason is m.StopReason.END_TURN
        ):
            return  # every dialect has an end of a turn
        level = self._target.support[feature]
        if (level in LOST_LEVELS and not frames) or level in (SupportLevel.PARTIAL, SupportLevel.FALLBACK):
            self._counts[feature] += 1

    @property
    def is_lossy(self) -> bool:
        """Whether anything was lost completely."""
        return any(self._level(feature) in LOST_LEVELS for feature in self._counts)

    def lines(self) -> Iterator[str]:
        """Lines such as `3 × tool_output: dropped`, losses before changes of form; then what the source never had."""
        for feature in sorted(
            self._counts, key=lambda name: (self._level(name) not in LOST_LEVELS, [*FEATURES].index(name))
        ):
            assert self._target is not None, "only a dialect loses anything"
            note = self._target.notes.get(feature)
            yield f"{self._counts[feature]} × {feature}: {self._level(feature)}{f' ({note})' if note else ''}"
        if self._source is not None:
            never_sent = [feature for feature in FEATURES if feature not in m.SESSION_FEATURES
                          and self._source.client_support[feature] in LOST_LEVELS]
            if never_sent:
                yield f"{self._source.dialect} itself never says: {', '.join(never_sent)}"

    def _level(self, feature: str) -> SupportLevel:
        assert self._target is not None, "only a dialect loses anything"
        return self._target.support[feature]


@dataclass
class TranslationNotes:
    """Notes that are collected during a translation and reported at its end."""

    records: int = 0
    torn: int = 0
    """Sessions whose last turn was cut by the end of the recording."""
    is_cut: bool = False
    """Whether the last item of the recording was cut."""
    unread: Counter[str] = field(default_factory=Counter)
    """Frames of clients that could not be read, by name."""

    def lines(self) -> Iterator[str]:
        if self.is_cut:
            yield "the recording ends in the middle of a line or an event; that was left out"
        if self.torn:
            turns = "a turn" if self.torn == 1 else f"{self.torn} turns"
            yield f"the recording ends in the middle of {turns}; what was open is closed"
        for name, count in self.unread.items():
            yield f"{count} × {name} of the client could not be read; left out"
        if not self.records:
            yield "the recording contains no events"


class TranslationWriter(Protocol):
    """The output of one translation."""

    def take(self, record: m.Record) -> bytes:
        """The bytes for this record."""
    def flush(self, now: float | None = None) -> bytes:
        """Held output that is due by then; all held output if no time is given."""
    @property
    def deadline(self) -> float | None: ...
    def forget(self, session_id: str) -> None:
        """The session has no more records."""


class DialectWriter:
    """Writes every session with a projector of its own."""

    def __init__(self, dialect: Dialect, table: Table, losses: LossCounter) -> None:
        self._dialect, self._table, self._losses = dialect, table, losses
        self._projectors: dict[str, Projector] = {}

    def take(self, record: m.Record) -> bytes:
        projector = self._projectors.get(record.session_id)
        if projector is None:
            projector = self._dialect.projector(self._table, self._dialect.default_options)
            self._projectors[record.session_id] = projector
        due = self._due(projector, record.at)
        frames = projector.feed(record)
        self._losses.count(record, len(frames))
        return due + self._recorded(frames)

    def flush(self, now: float | None = None) -> bytes:
        return b"".join(self._due(projector, now) for projector in self._projectors.values())

    @property
    def deadline(self) -> float | None:
        due = [projector.deadline for projector in self._projectors.values() if projector.deadline is not None]
        return min(due, default=None)

    def forget(self, session_id: str) -> None:
        self._projectors.pop(session_id, None)

    def _due(self, projector: Projector, now: float | None) -> bytes:
        """The output that a timer would have released by then."""
        written, before = b"", None
        while (due := projector.deadline) not in (None, before) and (now is None or due <= now):
            written += self._recorded(projector.flush(due))
            before = due
        return written

    def _recorded(self, frames: Frames) -> bytes:
        framing = self._dialect.framings[0]
        return b"".join([as_recorded_bytes(frame, framing) for frame in frames])


class RecordWriter:
    """Writes lines that `dragoman log import` and this room read."""

    deadline: float | None = None

    def __init__(self) -> None:
        self._begun = False

    def take(self, record: m.Record) -> bytes:
        head = (
            b""
            if self._begun
            else msgspec.json.encode(ExportHeader(format=EXPORT_FORMAT, model=m.MODEL_VERSION)) + b"\n"
        )
        self._begun = True
        return head + m.encode_record(record) + b"\n"

    def flush(self, now: float | None = None) -> bytes:
        return b""

    def forget(self, session_id: str) -> None:
        """There is nothing to forget."""


def as_recorded_bytes(frame: Frame, framing: Framing) -> bytes:
    """A server-sent event unchanged; a socket frame as a line; an event of Socket.IO as `["name", payload]`."""
    if framing == "sse":
        return frame.body
    if framing == "socketio":
        return b"[%b,%b]\n" % (orjson.dumps(frame.name), frame.body)
    return frame.body + b"\n"
