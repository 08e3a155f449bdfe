"""Imports the sessions of a server: lists them, reads each, stores each whole, and can be stopped at any time."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

import gateway.model as m
from gateway.errors import Conflict, ConnectionLost, GatewayError, NotFound, ServerUnreachable
from gateway.ids import random_id
from gateway.ports import Clock, PastSessions, RemoteSession

from .past_records import Destination, ImportMark, Origin, count_turns, make_records
from .resource_lines import GroupSummary

MAX_PASSES = 3
"""The list is read again until nothing new is in it, but not more often: sessions may move in it meanwhile."""
MAX_UNREACHABLE = 5
"""If the server cannot be reached for so many sessions in a row, the import stops."""
BATCH_SESSIONS, BATCH_SECONDS, BATCH_RECORDS = 32, 1.0, 20_000
"""Sessions are stored together: at most so many, of so many records, and those that were read in so many seconds."""


class ImportOutcome(StrEnum):
    """What became of a listed session."""

    IMPORTED = "imported"
    RENEWED = "renewed"
    UNCHANGED = "unchanged"
    OLDER = "older"
    WENT_ON = "went_on"
    REPEATED = "repeated"
    CONFLICT = "conflict"
    GONE = "gone"
    FAILED = "failed"


OUTCOME_TEXTS = {
    ImportOutcome.IMPORTED: "imported",
    ImportOutcome.RENEWED: "imported again, because they have changed at the server",
    ImportOutcome.UNCHANGED: "imported before",
    ImportOutcome.OLDER: "last changed before --since",
    ImportOutcome.WENT_ON: "not imported again, because they have gone on here and at the server",
    ImportOutcome.REPEATED: "listed more than once under one id, and imported once",
    ImportOutcome.CONFLICT: "not imported, because another session has their id here",
    ImportOutcome.GONE: "listed, but no longer at the server",
    ImportOutcome.FAILED: "not imported, because the server failed",
}
PROBLEMS = frozenset((ImportOutcome.WENT_ON, ImportOutcome.CONFLICT, ImportOutcome.FAILED))
"""The outcomes after which somebody should look at the report."""


class ImportLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the report: a session of the server, and what became of it."""

    session_id: str
    outcome: ImportOutcome
    own_id: str = ""
    """The id here, if it is another one."""
    title: str | None = None
    turns: int = 0
    unseen: tuple[str, ...] = ()
    reason: str = ""


class StoredSession(Struct, frozen=True):
    """A session that is stored here: its user, its last record, and the mark of its import if it was imported."""

    owner: str
    head: int
    mark: ImportMark | None

    def may_be_replaced(self, records: Sequence[m.Record]) -> bool:
        """Whether it is an earlier import of the session with these records, and has not gone on here."""
        ours, theirs = ImportMark.of(records[0]), self.mark
        if theirs is None or ours is None or self.head != theirs.head:
            return False
        return theirs.session_id == ours.session_id and (ours.updated_at or 0.0) > (theirs.updated_at or 0.0)


class SessionStore(Protocol):
    """Where imported sessions are stored."""

    async def find(self, session_id: str) -> StoredSession | None: ...
    async def store(self, sessions: Sequence[list[m.Record]]) -> Sequence[GatewayError | None]:
        """Store each session whole, and say for each why it was not stored.

        A `Conflict` means that another import has stored it meanwhile, or that it has gone on here.
        """


class NoStore:
    """A store in which nothing is stored, for a dry run where there is no file yet."""

    async def find(self, session_id: str) -> StoredSession | None:
        return None

    async def store(self, sessions: Sequence[list[m.Record]]) -> Sequence[GatewayError | None]:
        raise AssertionError("a dry run stores nothing")


class ImportSummary(Struct, frozen=True):
    """How many sessions had each outcome, and of how many imported ones something could not be seen or kept."""

    counts: dict[ImportOutcome, int]
    losses: dict[str, int]
    groups: list[GroupSummary] = []
    """What became of the things beside sessions."""


class ImportChoice(Struct, frozen=True, kw_only=True):
    """What is imported, and how."""

    since: float | None = None
    rate: float | None = None
    """At most so many requests for sessions a second; None for as fast as the server answers."""
    is_dry: bool = False


class Pace:
    """Lets so many requests a second through; None lets all through at once."""

    def __init__(self, rate: float | None) -> None:
        self._rate, self._next = rate, 0.0

    async def wait(self) -> None:
        if self._rate is None:
            return
        now = asyncio.get_running_loop().time()
        wait, self._next = self._next - now, max(now, self._next) + 1.0 / self._rate
        if wait > 0:
            await asyncio.sleep(wait)


async def report_nothing(line: ImportLine) -> None:
    """Nobody reads the lines."""


class Importer:
    """One run of an import. What was stored stays; another run goes on where this one was stopped."""

    def __init__(
        self, source: PastSessions, store: SessionStore, origin: Origin, to: Destination, clock: Clock, *,
        choice: ImportChoice = ImportChoice(),  # noqa: B008
        report: Callable[[ImportLine], Awaitable[None]] = report_nothing,
    ) -> None:
        self.counts = Counter[ImportOutcome]()
        """What became of the sessions, in the last pass that saw them."""
        self.losses = Counter[str]()
        """Of how many imported sessions this could not be seen or kept."""
        self._source, self._store, self._origin, self._to, self._clock = source, store, origin, to, clock
        self._choice, self._report = choice, report
        self._run = random_id("run")
        self._batch: dict[str, tuple[list[m.Record], ImportLine]] = {}
        self._batch_records = 0
        self._since_flush = 0.0
        self._pace = Pace(choice.rate)
        self._unreachable = 0

    async def run(self) -> None:
        """Import all that is listed; a `GatewayError` says why the list or the store could not be used any more."""
        self._since_flush = asyncio.get_running_loop().time()
        for number in range(1 if self._choice.is_dry else MAX_PASSES):
            before, self.counts = self.counts, Counter()
            try:
                await self._pass()
            finally:
                await self._flush()
            found = self.counts[ImportOutcome.IMPORTED] + self.counts[ImportOutcome.RENEWED]
            if number:
                self._add_earlier(before)
            if not found:
                break

    @property
    def summary(self) -> ImportSummary:
        return ImportSummary(
            {outcome: self.counts[outcome] for outcome in ImportOutcome if self.counts[outcome]},
            dict(self.losses.most_common()))

    def _add_earlier(self, before: "Counter[ImportOutcome]") -> None:
        """What earlier passes have imported is unchanged in this one: count it once, as imported."""
        for outcome in (ImportOutcome.IMPORTED, ImportOutcome.RENEWED):
            self.counts[outcome] += before[outcome]
        again = before[ImportOutcome.IMPORTED] + before[ImportOutcome.RENEWED]
        self.counts[ImportOutcome.UNCHANGED] = max(0, self.counts[ImportOutcome.UNCHANGED] - again)

    async def _pass(self) -> None:
        name: str | None = None
        while True:
            await self._pace.wait()
            listed, name = await self._source.page(name)
            for session in listed:
                await self._take(session)
            if name is None or not listed:
                return

    async def _take(self, listed: RemoteSession) -> None:
        own_id, since = self._origin.own_id(listed.session_id), self._choice.since
        if since is not None and listed.updated_at is not None and listed.updated_at < since:
            outcome = ImportOutcome.OLDER
        elif own_id in self._batch:
            outcome = ImportOutcome.REPEATED
        else:
            stored = await self._store.find(own_id)
            outcome = ImportOutcome.IMPORTED if stored is None else self._look_again(stored, listed)
        if outcome in (ImportOutcome.IMPORTED, ImportOutcome.RENEWED):
            await self._import(listed, outcome)
        else:
            await self._note(listed, outcome)

    def _look_again(self, stored: StoredSession, listed: RemoteSession) -> ImportOutcome:
        mark = stored.mark
        if mark is None or stored.owner != self._to.owner or (mark.dialect, mark.url, mark.session_id) != (
            self._origin.dialect, self._origin.url, listed.session_id
        ):
            return ImportOutcome.CONFLICT
        has_changed = listed.updated_at is not None and listed.updated_at > (mark.updated_at or 0.0)
        if not has_changed:
            is_other = mark.run == self._run and listed.updated_at != mark.updated_at
            return ImportOutcome.REPEATED if is_other else ImportOutcome.UNCHANGED
        return ImportOutcome.RENEWED if stored.head == mark.head else ImportOutcome.WENT_ON

    async def _import(self, listed: RemoteSession, outcome: ImportOutcome) -> None:
        await self._pace.wait()
        try:
            past = await self._source.read(listed.session_id)
            records = make_records(past, self._origin, self._to, self._clock(), self._run)
        except NotFound:
            await self._note(listed, ImportOutcome.GONE)
            return
        except (GatewayError, m.GrammarError) as error:
            await self._note(listed, ImportOutcome.FAILED, reason=str(error))
            is_away = isinstance(error, ServerUnreachable | ConnectionLost)
            self._unreachable = self._unreachable + 1 if is_away else 0
            if self._unreachable >= MAX_UNREACHABLE:
                raise
            return
        self._unreachable = 0
        own_id = records[0].session_id
        line = ImportLine(
            session_id=listed.session_id, outcome=outcome, own_id=own_id if own_id != listed.session_id else "",
            title=past.session.title, turns=count_turns(records), unseen=tuple(past.unseen),
        )
        if self._choice.is_dry:
            await self._write(line)
            return
        self._batch[own_id] = records, line
        self._batch_records += len(records)
        is_late = asyncio.get_running_loop().time() - self._since_flush >= BATCH_SECONDS
        if is_late or len(self._batch) >= BATCH_SESSIONS or self._batch_records >= BATCH_RECORDS:
            await self._flush()

    async def _flush(self) -> None:
        batch, self._batch, self._batch_records = list(self._batch.values()), {}, 0
        self._since_flush = asyncio.get_running_loop().time()
        if batch:
            stored = await self._store.store([records for records, _ in batch])
            for (_, line), error in zip(batch, stored, strict=True):
                await self._write(line if error is None else _not_stored(line, error))

    async def _note(self, listed: RemoteSession, outcome: ImportOutcome, reason: str = "") -> None:
        await self._write(ImportLine(session_id=listed.session_id, outcome=outcome, title=listed.title, reason=reason))

    async def _write(self, line: ImportLine) -> None:
        self.counts[line.outcome] += 1
        self.losses.update(line.unseen)
        await self._report(line)


def _not_stored(line: ImportLine, error: GatewayError) -> ImportLine:
    """The line of a session that was read, and not stored."""
    is_here = isinstance(error, Conflict)
    return ImportLine(
        session_id=line.session_id, own_id=line.own_id, title=line.title, reason="" if is_here else error.message,
        outcome=ImportOutcome.UNCHANGED if is_here else ImportOutcome.FAILED,
    )
