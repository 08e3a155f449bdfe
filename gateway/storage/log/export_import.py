"""Export and import of sessions: a file of JSON lines, first a header, then one line per record."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

import gateway.model as m
from gateway.errors import Conflict, Invalid
from gateway.field_errors import describe_struct_error
from gateway.json_values import MAX_JSON_ITEMS, JsonLimitExceeded, read_json
from gateway.storage.sealing import UNSEALED, Seal
from gateway.storage.sqlite import StorageUnusable, explain_error, open_exclusively

from .log_file import LogFile, Progress, open_log_file
from .segments import reseal_records
from .sqlite import SegmentWriter, remove_session

EXPORT_FORMAT = "dragoman log"
SEGMENT = 500
"""How many records of a session become one segment."""
MAX_RECORD_ITEMS = 100 * MAX_JSON_ITEMS
"""How many items a record may have; the first record of a session has all messages that it began with."""


class ExportHeader(msgspec.Struct, kw_only=True):
    """The first line: the format of the file, and the version of the model of its records."""

    format: str
    model: int


# -- out --------------------------------------------------------------------------------------------------------------

def export_sessions(
    path: Path, sessions: Sequence[str] = (), progress: Progress = lambda done, total: None, *, seal: Seal = UNSEALED,
) -> Iterator[bytes]:
    """The lines of these sessions, or of all, with sealed secrets; a server may use the file meanwhile."""
    with open_log_file(path) as file:
        chosen = [file.head(session_id).session_id for session_id in sessions]
        total = len(chosen) or file.size
        yield export_header()
        for number, session_id in enumerate(chosen or (head.session_id for head in file.heads()), 1):
            yield export_records(file.records(session_id), seal)
            progress(number, total)


def export_header() -> bytes:
    """The first line of an export."""
    return msgspec.json.encode(ExportHeader(format=EXPORT_FORMAT, model=m.MODEL_VERSION)) + b"\n"


def export_records(records: Sequence[m.Record], seal: Seal) -> bytes:
    """The lines of records of one session, with sealed secrets."""
    return b"".join(m.encode_record(record) + b"\n" for record in reseal_records(records, seal))


# -- in ---------------------------------------------------------------------------------------------------------------

@dataclass
class ImportReport:
    """The numbers of imported sessions and records."""

    sessions: int = 0
    records: int = 0
    replaced: int = 0


def import_sessions(
    path: Path, lines: Iterable[bytes], *, seal: Seal = UNSEALED, replace: bool = False,
    progress: Progress = lambda done, total: None,
) -> ImportReport:
    """All the sessions, or none if one cannot be taken. Raises `StorageUnusable` while a server holds the file."""
    done = ImportReport()
    with open_exclusively(path) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            for records in _sessions(lines):
                _store(connection, reseal_records(records, seal), replace, done)
                progress(done.sessions, 0)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StorageUnusable(explain_error(path, error)) from None
    return done


def store_sessions(
    path: Path, sessions: Sequence[list[m.Record]], may_replace: Callable[[LogFile, list[m.Record]], bool], *,
    seal: Seal = UNSEALED, prepared: bool = False,
) -> list[bool]:
    """Store these sessions together, and say which were stored: others exist already and may not be replaced.

    Raises `StorageUnusable` while a server holds the file. A file that is `prepared` was checked a moment ago.
    """
    stored = []
    with open_exclusively(path, prepared=prepared) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            file, done = LogFile(connection), ImportReport()
            for records in sessions:
                is_free = file.find(records[0].session_id) is None or may_replace(file, records)
                if is_free:
                    _store(connection, reseal_records(records, seal), replace=True, done=done)
                stored.append(is_free)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise StorageUnusable(explain_error(path, error)) from None
    return stored


def _store(connection: sqlite3.Connection, records: list[m.Record], replace: bool, done: ImportReport) -> None:
    session_id = records[0].session_id
    if LogFile(connection).find(session_id) is not None:
        if not replace:
            raise Conflict(f"there is a session '{session_id}' already; --replace puts this one in its place")
        remove_session(connection, session_id)
        done.replaced += 1
    rest = iter(records)
    while some := list(islice(rest, SEGMENT)):
        SegmentWriter({session_id: some})(connection)
    done.sessions += 1
    done.records += len(records)


def _sessions(lines: Iterable[bytes]) -> Iterator[list[m.Record]]:
    """The sessions, each with all its records, checked against the grammar."""
    reading: SessionLines | None = None
    seen: set[str] = set()
    for number, record in _records(lines):
        if reading is None or record.session_id != reading.session_id:
            if reading is not None:
                yield reading.records
            if record.session_id in seen:
                raise Invalid(f"line {number}: more of session '{record.session_id}'; its records belong together")
            reading = SessionLines(record.session_id)
            seen.add(record.session_id)
        reading.take(number, record)
    if reading is not None:
        yield reading.records


class SessionLines:
    """One session as its lines come in."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.records: list[m.Record] = []
        self._grammar = m.Grammar()

    def take(self, number: int, record: m.Record) -> None:
        if not self.records and not isinstance(record.event, m.SessionCreated):
            raise Invalid(f"line {number}: session '{self.session_id}' does not begin with session.created")
        if record.seq != len(self.records) + 1:
            raise Invalid(f"line {number}: record {len(self.records) + 1} of session '{self.session_id}' is wanted, "
                          f"and this is {record.seq}")
        try:
            self._grammar.check(record.event, record.scope_id)
        except m.GrammarError as error:
            raise Invalid(f"line {number}: {error}") from None
        self.records.append(record)


def _records(lines: Iterable[bytes]) -> Iterator[tuple[int, m.Record]]:
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    _check_header(next(numbered, (1, b""))[1])
    for number, line in numbered:
        try:
            read_json(line, MAX_RECORD_ITEMS)
            record = m.decode_record(line)
        except JsonLimitExceeded as error:
            raise Invalid(f"line {number}: {error}") from None
        except (msgspec.MsgspecError, ValueError) as error:
            raise Invalid(f"line {number}: is no record: {describe_struct_error(error)}") from None
        yield number, record


def _check_header(line: bytes) -> None:
    try:
        header = msgspec.json.decode(line, type=ExportHeader)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        header = ExportHeader(format="", model=0)
    if header.format != EXPORT_FORMAT:
        raise Invalid("line 1: this was not written by `dragoman log export`")
    if header.model > m.MODEL_VERSION:
        raise Invalid(f"line 1: this was written by a newer Dragoman (model {header.model}, this one knows "
                      f"{m.MODEL_VERSION}); install that one")
