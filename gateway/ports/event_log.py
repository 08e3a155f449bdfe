"""What time is, wherever it must not be asked of the machine.

What a log promises: records are kept in order, and shown to nobody before they are safe.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

import gateway.model as m
from gateway.errors import GatewayError

Clock = Callable[[], float]
"""Seconds since the epoch."""


class SessionHead(Struct, frozen=True, kw_only=True):
    """One row of the list of sessions; `ordinal` grows with each session created and is never used again."""

    session_id: str
    owner: str
    ordinal: int
    head: int = 0
    """The number of its last record."""
    in_turn: bool = False
    """Whether a turn runs or waits in it."""


OnCommit = Callable[[Sequence[m.Record]], None]
OnTrouble = Callable[[GatewayError], None]


class EventLog(Protocol):
    """An append-only log per session. Nothing may be shown to a client before `on_commit` has named it."""

    on_commit: OnCommit
    on_trouble: OnTrouble
    """Told when nothing can be stored; what was taken is kept and stored as soon as that is possible again."""

    @property
    def write_error(self) -> GatewayError | None:
        """Why nothing can be stored just now."""
    async def open(self) -> None:
        """Make ready; raises a `GatewayError` that tells what is wrong with the place."""
    @property
    def session_count(self) -> int:
        """How many sessions there are."""
    def append(self, record: m.Record) -> None:
        """Take the record; `on_commit` is told when it is safe, in order, several at a time where that is cheaper."""
    def append_deltas(self, records: Sequence[m.Record]) -> None:
        """The same for several deltas of one session that follow each other, at least one."""
    async def wait_stored(self, session_id: str, seq: int) -> None:
        """Wait until that record is safe; raises what the trouble is if it cannot be made so."""
    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[m.Record]:
        """Records after `after`, oldest first; empty for a session nobody knows."""
    async def read_without_deltas(self, session_id: str) -> Sequence[m.Record]:
        """All records but the deltas: enough to know the state of a session in which no turn runs."""
    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        """Newest first unless said otherwise, between two ordinals; no owner means everybody's."""
    async def head(self, session_id: str) -> SessionHead | None: ...
    async def sessions_in_turn(self, owner: str | None = None) -> Sequence[SessionHead]:
        """The sessions in which a turn runs or waits."""
    async def session_of(self, word: str) -> str | None:
        """The session that a turn or an ask of this id belongs to."""
    async def delete_session(self, session_id: str) -> None:
        """Remove the session and all its records."""
    async def close(self) -> None: ...
