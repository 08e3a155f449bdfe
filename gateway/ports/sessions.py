"""What the session service promises: sessions made, found, spoken to, followed, and told once more."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from msgspec import Struct

import gateway.model as m

from .backend import Backend
from .event_log import SessionHead


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a list of commands: their records, the turn they belong to, and where its stream begins."""

    turn_id: str | None
    records: tuple[m.Record, ...]
    after: int
    begun: bool
    """Whether a turn was started or resumed."""


class Chunk(Struct, frozen=True, gc=False):
    """What one record is on one dialect's wire: ready frames, and whether the turn yields or ends here."""

    seq: int
    frames: tuple[bytes, ...]
    yields: bool
    ends: bool = False
    due: float | None = None
    """By when it was due, where it had been held back and no record but a timer let it go."""


class Subscription(Protocol):
    """A cursor into one session's log, read in one dialect."""

    @property
    def cut_at(self) -> int | None:
        """Where a reader that was too slow should resume; None for everybody else."""
    @property
    def is_draining(self) -> bool:
        """Whether it is over because the server stops: the reader should come again."""
    async def chunks(self) -> Sequence[Chunk]:
        """All that is ready after the cursor, waiting for the first; empty once the subscription is over."""
    def cut(self) -> None:
        """End it, because the reader takes nothing."""
    def close(self) -> None: ...


class StreamSlot(Protocol):
    """Room for one who watches: taken before there is something to watch; closed once, by it or by the watching."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...


class SessionService(Protocol):
    """What adapters may want of the engine. `owner` is the user; other people's sessions are not found."""

    async def create(
        self, owner: str, agent: str, *, settings: m.Settings = ..., history: Sequence[m.SeedMessage] = ...,
        title: str | None = ..., metadata: dict[str, Any] | None = ...,
    ) -> m.SessionView: ...
    async def import_session(self, owner: str, records: Sequence[m.Record]) -> m.SessionView:
        """A new session of this owner, with all that records of another session tell; `Invalid` if they tell none."""
    async def get(self, owner: str, session_id: str) -> m.SessionView: ...
    async def find_by_id(self, owner: str, word: str) -> m.SessionView:
        """The session that a turn or an ask of this id belongs to."""
    async def active(self, owner: str) -> Sequence[m.SessionView]:
        """The sessions in which a turn runs or waits."""
    async def list(
        self, owner: str, *, before: int | None = ..., limit: int = ...,
    ) -> tuple[list[m.SessionView], int | None]:
        """A page, newest first, and the cursor of the next one."""
    async def heads(
        self, owner: str, *, before: int | None = ..., after: int | None = ..., limit: int = ...,
        oldest_first: bool = ...,
    ) -> Sequence[SessionHead]:
        """The sessions between two ordinals, for those who page in both directions."""
    async def head(self, owner: str, session_id: str) -> SessionHead: ...
    async def update(
        self, owner: str, session_id: str, *, title: str | None = ..., metadata: dict[str, Any] | None = ...,
        agent: str | None = ...,
    ) -> m.SessionView:
        """What is None stays; `metadata` takes the place of the old as a whole; only an idle session changes agents."""
    async def close(self, owner: str, session_id: str, reason: m.CloseReason) -> m.SessionView:
        """End whatever runs; from now on the session can be read, and nothing else."""
    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> m.SessionView:
        """Put a sub-agent away that has ended."""
    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = ...) -> m.SessionView:
        """Hide what was said after one of the view's checkpoints; the log keeps it."""
    async def replace_backend(self, owner: str, session_id: str, backend: Backend | None) -> None:
        """From the next turn on this backend plays the agent of the session; None gives the agent its part back."""
    async def post_event(self, owner: str, session_id: str, event: m.NoticePosted | m.CustomEvent) -> m.SessionView:
        """Let everybody who watches the session know of something beside the conversation."""
    async def delete(self, owner: str, session_id: str) -> None: ...
    def check_turn(self, owner: str) -> None:
        """Raise what any new turn of this owner would be refused with just now, before anything is done for one."""
    async def submit(self, owner: str, session_id: str, commands: Sequence[m.AnyCommand]) -> Receipt:
        """Accept all the commands or none, and return when they are in the log."""
    def reserve_stream(self, owner: str) -> StreamSlot:
        """Take a place among those who watch, before a command is submitted whose end is to be watched.

        Raises `Overloaded` or `RateLimited` if there is none.
        """
    async def subscribe(
        self, owner: str, session_id: str, dialect: str, options: str = ..., *, after: int = ...,
        place: StreamSlot | None = ...,
    ) -> Subscription:
        """Watch from that record on, in this place or in one that is taken now."""
    async def read(
        self, owner: str, session_id: str, dialect: str, options: str = ..., *, after: int = ...,
        upto: int | None = ...,
    ) -> AsyncIterator[Chunk]:
        """The chunks of the records after `after` and up to `upto`, as a subscriber gets them; waits for no more."""

    async def records(
        self, owner: str, session_id: str, after: int = ..., limit: int | None = ...
    ) -> Sequence[m.Record]:
        """What the log has of a session."""
    async def client_left(self, owner: str, session_id: str, turn_id: str) -> None:
        """A client that started this turn has gone; what follows is `on_disconnect`'s to say."""


class ManagedSessionService(SessionService, Protocol):
    """A session service as the application runs it: recovered at the start, drained and ended with the server."""

    @property
    def leads(self) -> bool:
        """Whether this server does the work that only one of several servers may do."""
    async def recover(self) -> int:
        """Take up the turns that were open when a server stopped; return how many."""
    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Start no turn; let running turns finish for so many seconds, or until `hurry` is set; then end them."""
    async def rest(self) -> None:
        """Nothing more will be asked of this service: leave the other servers, where there are others."""


class ReplayState(Struct, frozen=True, kw_only=True):
    """How far a replay is: `replaying`, `completed`, `stopped`, or `autonomous` once the agent has its part back."""

    source: str
    status: str
    speed: int
    turn: int
    turns: int


class Replays(Protocol):
    """Sessions told once more, at their own pace or faster."""

    async def can(self, owner: str, session_id: str) -> str | None:
        """Why the session cannot be replayed; None if it can."""
    async def start(
        self, owner: str, session_id: str, speed: int, metadata: dict[str, Any],
        on_change: Callable[[str, ReplayState], Awaitable[None]],
    ) -> m.SessionView:
        """A new session in which this one happens again; `on_change` is told of its id and how far it is."""
    def state(self, owner: str, session_id: str) -> ReplayState:
        """Of the session in which the replay happens."""
    async def change(
        self, owner: str, session_id: str, *, speed: int | None = ..., stop: bool = ...,
    ) -> ReplayState:
        """Another speed from now on, or the end of it: the agent has its part back."""
