"""The columns of the console: a session as canonical records, and as the frames of each dialect, record by record.

A column is a projector like any other: the hub feeds it, shares it among readers, and resumes it. It gives one item for
each record, so that a column shows where its dialect says nothing, and why.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
import orjson
from msgspec import Struct

import gateway.model as m
from gateway.logging import mask_secrets
from gateway.ports import Dialect, Frame, FrameCursor, Frames, Framing, Projector, StreamOptions
from mappings.language import Table, feature_of

from .trace import FrameTrace, Silence, SilenceNotes, TracedTable, rows_of_frames

RECORDS = "console"
"""The name under which the hub knows the column of canonical records."""
COLUMN_PREFIX = "console:"
"""The hub knows the column of a dialect by this prefix and the name of the dialect."""
RECORD_EVENT, FRAMES_EVENT = "record", "frames"
SOCKETIO_EVENT = "42"
"""What a packet of Socket.IO that carries an event begins with."""


class ColumnOptions(StreamOptions, frozen=True):
    """The options of the dialect's own stream."""

    options: StreamOptions


class RecordItem(Struct, frozen=True, kw_only=True):
    """A canonical record; `feature` is the feature that its event is an instance of, if it is one."""

    seq: int
    at: float
    turn_id: str | None
    scope_id: str
    name: str
    variant: str
    feature: str | None
    event: m.AnyEvent


class FrameItem(Struct, frozen=True, kw_only=True):
    """One frame, exactly as a client gets it.

    `cue` and `line` are the row of the table that made it; `origins` are the records that it has the content of, if
    these are not only the record of its item.
    """

    name: str
    text: str
    size: int
    cursor: FrameCursor
    cue: str | None = None
    line: int | None = None
    origins: list[int] = []


class ColumnItem(Struct, frozen=True, kw_only=True):
    """What one dialect says for one record: frames, or why it says nothing.

    `due` is the time at which a timer has released frames after the record; None for the frames of the record itself.
    """

    dialect: str
    seq: int
    at: float
    due: float | None
    frames: list[FrameItem]
    silence: Silence | None


_encode_item = msgspec.json.Encoder(decimal_format="number").encode


def record_item(record: m.Record) -> RecordItem:
    """The record for readers: secrets are masked, and what dialects keep for themselves is left out."""
    record = mask_secrets(record)
    event = record.event
    if isinstance(event, m.SessionCreated | m.SessionUpdated) and event.metadata and m.PRIVATE in event.metadata:
        event = msgspec.structs.replace(event, metadata=m.public_metadata(event.metadata))
    return RecordItem(
        seq=record.seq, at=record.at, turn_id=record.turn_id, scope_id=record.scope_id, name=event.name,
        variant=event.variant, feature=feature_of(event), event=event,
    )


def encode_record_item(record: m.Record) -> bytes:
    return _encode_item(record_item(record))


class RecordColumn:
    """Canonical records; nothing is held back."""

    deadline: float | None = None

    def feed(self, record: m.Record) -> Frames:
        return (Frame(encode_record_item(record), RECORD_EVENT, record.seq),)

    def flush(self, now: float) -> Frames:
        return ()

    def skip(self, record: m.Record) -> None:
        """A record has no influence on the next."""


class DialectColumn:
    """The frames of one dialect. The dialect's own projector makes them, with a table that remembers its rows."""

    def __init__(self, dialect: Dialect, table: Table, notes: SilenceNotes, options: StreamOptions) -> None:
        self._name, self._framing = dialect.name, dialect.framings[0]
        self._table, self._notes = table, notes
        self._trace = FrameTrace()
        self._projector: Projector = dialect.projector(TracedTable(table, self._trace), options)
        self._seq, self._at, self._flushes = 0, 0.0, 0
        self._held: list[int] = []
        """The records whose content the projector holds back."""

    @property
    def deadline(self) -> float | None:
        return self._projector.deadline

    def feed(self, record: m.Record) -> Frames:
        """The item of the record, and before it what a timer has released, or would have released, before the record.

        So the items are the same whether they are read live or later.
        """
        due = self._projector.deadline
        early = self._released(due) if due is not None and due <= record.at else ()
        self._begin(record)
        frames = self._projector.feed(record)
        silence = None if frames else self._silence(record)
        item = ColumnItem(dialect=self._name, seq=record.seq, at=record.at, due=None, frames=self._items(frames),
                          silence=silence)
        return (*early, Frame(_encode_item(item), FRAMES_EVENT, record.seq))

    def skip(self, record: m.Record) -> None:
        """Make the item that the client has had: what the projector holds back after it is part of the next one."""
        self.feed(record)

    def flush(self, now: float) -> Frames:
        return self._released(now)

    def _begin(self, record: m.Record) -> None:
        self._trace.begin(record.seq)
        self._seq, self._at, self._flushes = record.seq, record.at, 0

    def _released(self, now: float) -> Frames:
        frames = self._projector.flush(now)
        if not frames:
            return ()
        self._flushes += 1
        item = ColumnItem(dialect=self._name, seq=self._seq, at=self._at, due=now, frames=self._items(frames),
                          silence=None)
        return (Frame(_encode_item(item), FRAMES_EVENT, f"{self._seq}+{self._flushes}"),)

    def _items(self, frames: Frames) -> list[FrameItem]:
        held, self._held = (self._held, []) if frames else ((), self._held)
        found = []
        for place, (frame, made) in enumerate(rows_of_frames(self._trace, frames)):
            position = self._table.rows.position(made.cue, made.place) if made is not None else None
            origins = list(held) if place == 0 else []
            if made is not None and made.seq != self._seq and made.seq not in origins:
                origins.append(made.seq)
            text = wire_text(frame, self._framing)
            found.append(FrameItem(
                name=frame.name, text=text, size=len(text.encode()), cursor=frame.cursor,
                cue=made.cue if made is not None else None, line=position.line if position is not None else None,
                origins=origins,
            ))
        return found

    def _silence(self, record: m.Record) -> Silence:
        if self._projector.deadline is not None:
            self._held.append(record.seq)
            del self._held[:-1000]
        return self._notes.silence(record, self._trace.silent, is_held=self._projector.deadline is not None)


def wire_text(frame: Frame, framing: Framing) -> str:
    """The frame as it goes over the wire; of Socket.IO, the packet."""
    text = frame.body.decode(errors="replace")
    return f"{SOCKETIO_EVENT}[{orjson.dumps(frame.name).decode()},{text}]" if framing == "socketio" else text


# -- the hub's view ---------------------------------------------------------------------------------------------------

class DialectStreams(Protocol):
    """The dialects that are served, as the hub sees them."""

    def projector(self, dialect: str, options: StreamOptions) -> Projector: ...
    def replays_turn(self, dialect: str) -> bool: ...


class ServedParts(Protocol):
    """What the settings name, loaded: dialects, their settings and tables, and agents."""

    @property
    def dialects(self) -> Mapping[str, Dialect]: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def tables(self) -> Mapping[str, Table]: ...
    @property
    def cards(self) -> Mapping[str, m.AgentCard]: ...


class ConsoleColumns:
    """Makes the projectors of columns beside those of the dialects; notes are made once for each table."""

    def __init__(self, streams: DialectStreams, parts: Callable[[], ServedParts]) -> None:
        self._streams, self._parts = streams, parts
        self._notes: dict[str, SilenceNotes] = {}

    def projector(self, dialect: str, options: StreamOptions) -> Projector:
        if dialect == RECORDS:
            return RecordColumn()
        if not dialect.startswith(COLUMN_PREFIX):
            return self._streams.projector(dialect, options)
        assert isinstance(options, ColumnOptions)
        name, parts = dialect.removeprefix(COLUMN_PREFIX), self._parts()
        return DialectColumn(parts.dialects[name], parts.tables[name], self.notes(name), options.options)

    def replays_turn(self, dialect: str) -> bool:
        if dialect == RECORDS:
            return True
        return self._streams.replays_turn(dialect.removeprefix(COLUMN_PREFIX))

    def notes(self, name: str) -> SilenceNotes:
        """The notes of the table that is in force now."""
        table, found = self._parts().tables[name], self._notes.get(name)
        if found is None or found.table is not table:
            found = self._notes[name] = SilenceNotes(table)
        return found

    def options(self, name: str, view: m.SessionView) -> ColumnOptions:
        """The options of the stream that a usual client of this session gets."""
        parts = self._parts()
        dialect = parts.dialects[name]
        make = dialect.session_options
        return ColumnOptions(make(parts.settings[name], view) if make is not None else dialect.default_options)
