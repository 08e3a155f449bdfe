"""Verification of a SQLite log: damaged pages, missing records and broken grammar, each with its session and record."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

import gateway.model as m
from gateway.ports import SessionHead

from .log_file import LogFile, Progress, Segment, open_log_file
from .segments import lookup_id_of

MAX_LISTED_PAGES = 100
"""How many damaged pages are listed."""


class LogProblem(NamedTuple):
    """One problem of the log, with its session and record."""

    words: str
    session_id: str | None = None
    seq: int | None = None

    def __str__(self) -> str:
        place = f"{self.session_id or 'the file'}{'' if self.seq is None else f', record {self.seq}'}"
        return f"{place}: {self.words}"


@dataclass
class VerificationReport:
    """How much was checked, and which problems were found."""

    sessions: int = 0
    segments: int = 0
    records: int = 0
    resources: int = 0
    problems: list[LogProblem] = field(default_factory=list)


def verify_log(path: Path, progress: Progress = lambda done, total: None) -> VerificationReport:
    """Check the whole file; a server may use it meanwhile. Raises `StorageUnusable` if there is no such file."""
    verdict = VerificationReport()
    with open_log_file(path) as file:
        verdict.problems += _pages(file)
        try:
            total = file.size
            for head in file.heads():
                verdict.problems += _session(file, head.session_id, verdict)
                progress(verdict.sessions, total)
            verdict.problems += _leftovers(file)
            verdict.problems += _resources(file, verdict)
        except sqlite3.DatabaseError as error:
            verdict.problems.append(LogProblem(f"cannot be read further: {error}"))
    return verdict


def _pages(file: LogFile) -> Iterator[LogProblem]:
    try:
        found = [
            " ".join(row[0].split()) for row in file.connection.execute(f"PRAGMA integrity_check({MAX_LISTED_PAGES})")
        ]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    yield from (LogProblem(f"damaged: {words}") for words in found if words != "ok")


# -- one session ------------------------------------------------------------------------------------------------------

def _session(file: LogFile, session_id: str, verdict: VerificationReport) -> list[LogProblem]:
    """Check one snapshot of the file, whatever a server writes meanwhile."""
    file.connection.execute("BEGIN")
    try:
        row = file.find(session_id)
        if row is None:
            return []  # deleted a moment ago
        look = SessionCheck(row)
        for segment in file.segments(row.ordinal):
            look.take(segment)
        look.end(set(file.lookup_ids(row.ordinal)))
    finally:
        file.connection.execute("COMMIT")
    verdict.sessions += 1
    verdict.segments += look.segments
    verdict.records += look.records
    return look.problems


class SessionCheck:
    """Reads one session as the engine would, and notes what does not fit."""

    def __init__(self, head: SessionHead) -> None:
        self.problems: list[LogProblem] = []
        self.segments = self.records = 0
        self._head = head
        self._grammar: m.Grammar | None = m.Grammar()
        self._last: m.Record | None = None
        self._turn: str | None = None
        self._words: list[tuple[str, int]] = []

    def take(self, segment: Segment) -> None:
        self.segments += 1
        if segment.model > m.MODEL_VERSION:
            self._note(f"written by a newer Dragoman (model {segment.model}, not {m.MODEL_VERSION})", segment.last)
        try:
            records = segment.records()
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            self._note(f"the segment that ends here cannot be read: {error}", segment.last)
            self._grammar, self._last = None, None
            return
        if not segment.is_parted:
            self._note("words and events are in each other's place", segment.last)
        if not records or records[-1].seq != segment.last:
            self._note(f"the segment is filed under {segment.last}", records[-1].seq if records else segment.last)
        for record in records:
            self._take(record)

    def _take(self, record: m.Record) -> None:
        before = self._last.seq if self._last else (0 if self.records == 0 and self._grammar else record.seq - 1)
        if record.seq != before + 1:
            self._note(f"follows record {before}", record.seq)
        if self._last is not None and record.at < self._last.at:
            self._note("is earlier than the one before it", record.seq)
        if record.session_id != self._head.session_id:
            self._note(f"belongs to session '{record.session_id}'", record.seq)
        self._check_law(record)
        self._remember(record)
        self._last = record
        self.records += 1

    def _check_law(self, record: m.Record) -> None:
        """Check the grammar up to the first wrong event; later events cannot be checked without it."""
        if self._grammar is None:
            return
        try:
            self._grammar.check(record.event, record.scope_id)
        except m.GrammarError as error:
            self._note(str(error), record.seq)
            self._grammar = None

    def _remember(self, record: m.Record) -> None:
        if isinstance(record.event, m.SessionCreated) and record.event.owner != self._head.owner:
            self._note(f"the owner is '{record.event.owner}', the list says '{self._head.owner}'", record.seq)
        if (word := lookup_id_of(record)) is not None:
            self._words.append((word, record.seq))
        if isinstance(record.event, m.TurnStarted):
            self._turn = record.turn_id
        elif isinstance(record.event, m.TurnEnded):
            self._turn = None

    def end(self, words: set[str]) -> None:
        """Compare the session with its row in the list of sessions."""
        seq = self._last.seq if self._last else 0
        if self._head.head != seq:
            self._note(f"the list of sessions says that {self._head.head} is the last one", seq)
        if self._head.in_turn != (self._turn is not None) and self._grammar is not None:
            self._note("the list of sessions is wrong about whether a turn is open", seq)
        for word, where in self._words:
            if word not in words:
                self._note(f"'{word}' cannot be found by its id", where)

    def _note(self, words: str, seq: int) -> None:
        self.problems.append(LogProblem(words, self._head.session_id, seq))


# -- beside the sessions ----------------------------------------------------------------------------------------------

def _leftovers(file: LogFile) -> Iterator[LogProblem]:
    for table, what in (("segments", "records"), ("places", "ids")):
        [count] = file.connection.execute(
            f"SELECT count(*) FROM {table} WHERE session NOT IN (SELECT ordinal FROM sessions)").fetchone()  # noqa: S608
        if count:
            yield LogProblem(f"{count} {what} belong to no session; `dragoman log compact` removes them")


def _resources(file: LogFile, verdict: VerificationReport) -> Iterator[LogProblem]:
    rows = file.connection.execute("SELECT kind, resource_id, version, json_valid(CAST(record AS TEXT)) FROM resources")
    for kind, resource_id, version, is_valid in rows:
        verdict.resources += 1
        if not is_valid:
            yield LogProblem(f"version {version} of {kind} '{resource_id}' cannot be read")
