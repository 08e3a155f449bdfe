"""Writes records as the frames of a dialect, or as records."""

from typing import Protocol

import msgspec
import orjson

import gateway.model as m
from gateway.ports import Dialect, Frame, Frames, Framing, Projector
from gateway.storage.log import EXPORT_FORMAT, ExportHeader
from mappings.language import Table

from .loss_report import LossCounter


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
