"""The event log: keeps the records of sessions in order, and reports each record when it is stored."""

from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Literal, Protocol

from msgspec import Struct

import gateway.model as m
from gateway.errors import GatewayError

Clock = Callable[[], float]
"""Seconds since the epoch."""
Sleep = Callable[[float], Awaitable[None]]
"""Waits for so many seconds."""


MORE_ROOM = "delete some, let `retention.sessions` do it, or raise `limits.max_sessions`"
"""What an operator can do when there are too many sessions."""


def too_many_sessions(most: int) -> str:
    """The text of the error that a client gets who would create one session too many."""
    return f"the server keeps {most} sessions, and no more are allowed; the operator can {MORE_ROOM}"


class SessionHead(Struct, frozen=True, kw_only=True):
    """One row of the list of sessions; `ordinal` grows with each session created and is never used again."""

    session_id: str
    owner: str
    ordinal: int
    head: int = 0
    """The number of its last record."""
    in_turn: bool = False
    """Whether a turn runs or waits in it."""


class ListedSession(Struct, frozen=True, kw_only=True):
    """One row of a list that is ordered and filtered: a session and its summary."""

    session_id: str
    ordinal: int
    summary: m.SessionSummary


ListOrder = Literal["created", "updated"]
"""By which time a list is ordered, newest first."""


class LogListener(Protocol):
    """The engine, as a log sees it: the log reports what became of the records that it was given."""

    def committed(self, records: Sequence[m.Record]) -> None:
        """These records, which are of one session and follow each other, are stored: clients may see them now."""
    def failed(self, error: GatewayError, sessions: Container[str] | None = None) -> None:
        """Nothing of these sessions, or of any, can be stored just now; the log stores their records later."""


class NoListener:
    """The listener of a log to which no engine was attached."""

    def committed(self, records: Sequence[m.Record]) -> None:
        """Nobody waits for the records."""
    def failed(self, error: GatewayError, sessions: Container[str] | None = None) -> None:
        """Nobody waits for the records."""


NO_LISTENER = NoListener()


class EventLog(Protocol):
    """An append-only log per session. No client may see a record before the log has reported it to the listener."""

    def attach(self, listener: LogListener) -> None:
        """Report to this listener from now on; a log has one listener, which is given once."""
    @property
    def write_error(self) -> GatewayError | None:
        """Why nothing can be stored just now; None while records can be stored."""
    def error_of(self, session_id: str) -> GatewayError | None:
        """Why nothing of this session can be stored just now, though something of others may be."""
    async def open(self) -> None:
        """Make the log ready; raises a `GatewayError` that says what is wrong with its place."""
    @property
    def session_count(self) -> int:
        """How many sessions there are."""
    def append(self, record: m.Record) -> None:
        """Take the record; the log reports stored records to the listener in order, one or several at a time."""
    def append_deltas(self, records: Sequence[m.Record]) -> None:
        """Take one or more deltas of one session that follow each other."""
    async def wait_stored(self, session_id: str, seq: int) -> None:
        """Wait until that record is stored; raises `write_error` if the record cannot be stored."""
    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[m.Record]:
        """Records after `after`, oldest first; none if there is no such session."""
    async def read_without_deltas(
        self, session_id: str, after: int = 0, upto: int | None = None,
    ) -> Sequence[m.Record]:
        """The records after `after` and up to `upto`, except deltas; all of them give the state of an idle session."""
    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        """The sessions between two ordinals, newest first by default; `owner` None means the sessions of all owners."""
    async def listed(
        self, owner: str, label: str, order: ListOrder, *, offset: int = 0, limit: int = 50,
    ) -> Sequence[ListedSession]:
        """The sessions of an owner that have a label, newest first; the cost does not grow with their number."""
    async def mentioning(self, owner: str, text: str) -> Sequence[ListedSession] | None:
        """The sessions of an owner in which the text may stand, newest first; None if this log has no index for it.

        No session is missing whose title, or one of whose messages, has the text, whatever its case.
        """
    async def created_between(
        self, owner: str, first: float, last: float, limit: int,
    ) -> Sequence[ListedSession] | None:
        """So many sessions that were created from `first` to `last`, oldest first; None if not all have their times."""
    async def count_listed(self, owner: str, label: str) -> int:
        """How many sessions of an owner have a label."""
    async def head(self, session_id: str) -> SessionHead | None: ...
    async def sessions_in_turn(self, owner: str | None = None) -> Sequence[SessionHead]:
        """The sessions in which a turn runs or waits."""
    async def session_of(self, word: str) -> str | None:
        """The id of the session that has a turn or an ask of this id."""
    async def delete_session(self, session_id: str) -> None:
        """Remove the session and all its records."""
    async def close(self) -> None: ...
