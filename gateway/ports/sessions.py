"""The session service: creates, finds, commands and streams sessions; and replays of sessions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, Self

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonObject

from .backend import Backend
from .dialect import Frames, StreamOptions
from .event_log import ListedSession, ListOrder, SessionHead


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a list of commands: their records, the turn they belong to, and where its stream begins."""

    turn_id: str | None
    records: tuple[m.Record, ...]
    after: int
    begun: bool
    """Whether a turn was started or resumed."""


class Chunk(Struct, frozen=True, gc=False):
    """The frames of one record in one dialect, and whether the turn yields or ends with it."""

    seq: int
    frames: Frames
    yields: bool
    ends: bool = False
    due: float | None = None
    """When a timer released frames that had been held back; None if the record itself released them."""


class FramePlace(NamedTuple):
    """A place in a stream: a record, and how many frames come from there to the place."""

    after: int
    had: int


class Subscription(Protocol):
    """A position in the log of one session, read in one dialect."""

    @property
    def cut_at(self) -> int | None:
        """Where a client that was too slow should resume; None if it was not cut."""
    @property
    def is_draining(self) -> bool:
        """Whether the stream ended because the server stops: the client should reconnect."""
    async def chunks(self) -> Sequence[Chunk]:
        """The chunks after the position, waiting for the first; empty once the subscription has ended."""
    def cut(self) -> None:
        """End the subscription, because the client does not read."""
    def close(self) -> None: ...


class StreamSlot(Protocol):
    """Room for one stream, reserved before the stream begins; closed once, with the stream or without one."""

    def close(self) -> None: ...
    def on_close(self, callback: Callable[[], None]) -> None:
        """Call this when the room is given back."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...


class SessionFilter(Struct, frozen=True, kw_only=True):
    """Which sessions a list has: those that have all labels and fit the rest."""

    labels: tuple[str, ...] = ()
    without: str | None = None
    """A label that no session of the list has, except those with the label `unless`."""
    unless: str | None = None
    prefix: str = ""
    """What at least one label of each session begins with."""
    title: str = ""
    """What the title contains, whatever its case."""
    text: str = ""
    """What the title or a message contains; sessions are listed that may have it, and whoever asks looks at them."""


class SessionService(Protocol):
    """The engine, as adapters see it. `owner` is the user; the sessions of other users are not found."""

    async def create(
        self, owner: str, agent: str, *, settings: m.Settings = ..., history: Sequence[m.SeedMessage] = ...,
        title: str | None = ..., metadata: JsonObject | None = ...,
    ) -> m.SessionView: ...
    async def import_session(
        self, owner: str, records: Sequence[m.Record], *, session_id: str | None = ...,
    ) -> m.SessionView:
        """Create a session from the records of another session; `Invalid` if the records are wrong.

        It is stored whole or not at all. `Conflict` if there is a session of the id that was asked for.
        """
    async def get(self, owner: str, session_id: str) -> m.SessionView: ...
    async def find_by_id(self, owner: str, word: str) -> m.SessionView:
        """The session that a turn or an ask of this id belongs to."""
    async def active(self, owner: str) -> Sequence[m.SessionView]:
        """The sessions in which a turn runs or waits."""
    async def list(
        self, owner: str, *, before: int | None = ..., limit: int = ...,
    ) -> tuple[list[m.SessionView], int | None]:
        """A page, newest first, and the cursor of the next one."""
    async def find(
        self, owner: str, wanted: SessionFilter, *, order: ListOrder = ..., offset: int = ..., limit: int = ...,
    ) -> tuple[Sequence[ListedSession], int]:
        """The rows of a list from one place on, newest first, and how many rows the list has."""
    async def created_between(
        self, owner: str, first: float, last: float, limit: int,
    ) -> Sequence[ListedSession] | None:
        """So many sessions that were created from `first` to `last`, oldest first; None if the log cannot say."""
    async def heads(
        self, owner: str, *, before: int | None = ..., after: int | None = ..., limit: int = ...,
        oldest_first: bool = ...,
    ) -> Sequence[SessionHead]:
        """The sessions between two ordinals, for those who page in both directions."""
    async def head(self, owner: str, session_id: str) -> SessionHead: ...
    async def update(
        self, owner: str, session_id: str, *, title: str | None = ..., metadata: JsonObject | None = ...,
        agent: str | None = ...,
    ) -> m.SessionView:
        """Change what is not None; `metadata` replaces all metadata; only an idle session changes its agent."""
    async def close(self, owner: str, session_id: str, reason: m.CloseReason) -> m.SessionView:
        """End the turn that runs; from now on the session can only be read."""
    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> m.SessionView:
        """Archive a sub-agent that has ended."""
    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = ...) -> m.SessionView:
        """Hide all messages after one of the checkpoints of the view; the log keeps them."""
    async def replace_backend(self, owner: str, session_id: str, backend: Backend | None) -> None:
        """Run the turns of this session with another backend; None means the backend of its agent again."""
    async def post_event(self, owner: str, session_id: str, event: m.NoticePosted | m.CustomEvent) -> m.SessionView:
        """Append an event beside the conversation, for all subscribers of the session."""
    async def delete(self, owner: str, session_id: str) -> None: ...
    def check_turn(self, owner: str) -> None:
        """Raise the error that a new turn of this owner would get now."""
    async def submit(self, owner: str, session_id: str, commands: Sequence[m.AnyCommand]) -> Receipt:
        """Accept all commands or none, and return when they are stored."""
    def reserve_stream(self, owner: str) -> StreamSlot:
        """Reserve a stream before a command is submitted whose turn will be streamed.

        Raises `Overloaded` or `RateLimited` if there is none.
        """
    async def subscribe(
        self, owner: str, session_id: str, dialect: str, options: StreamOptions = ..., *, after: int = ...,
        place: StreamSlot | None = ...,
    ) -> Subscription:
        """Subscribe after that record, in a slot that was reserved or that is reserved now."""
    async def read(
        self, owner: str, session_id: str, dialect: str, options: StreamOptions = ..., *, after: int = ...,
        upto: int | None = ...,
    ) -> AsyncIterator[Chunk]:
        """The chunks of the records after `after` and up to `upto`, as a subscriber gets them; waits for no more."""
    def resume_place(self, session_id: str, dialect: str, options: StreamOptions, after: int, had: int) -> FramePlace:
        """Where a stream can begin for a client that has had so many frames of the records after `after`.

        It is a place that was read before and is not long before the client's place; or else the one that was given.
        """
    async def records(
        self, owner: str, session_id: str, after: int = ..., limit: int | None = ...
    ) -> Sequence[m.Record]:
        """The stored records of a session."""
    async def client_left(self, owner: str, session_id: str, turn_id: str) -> None:
        """The client that started this turn has disconnected; the setting `on_disconnect` says what follows."""


class ManagedSessionService(SessionService, Protocol):
    """A session service as the application runs it: recovered at the start, drained and ended with the server."""

    @property
    def leads(self) -> bool:
        """Whether this server does the work that only one of several servers may do."""
    async def join(self) -> None:
        """Become one of the servers that share the sessions, if there are several; `recover` does so as well."""
    async def recover(self) -> int:
        """Take up the turns that were open when a server stopped; return how many."""
    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Start no turn; let running turns finish for so many seconds, or until `hurry` is set; then end them."""
    async def delete_unchanged(self, owner: str, session_id: str, head: int) -> None:
        """Delete the session if that is still its last record; `Conflict` if something has happened in it."""
    async def release(self) -> None:
        """Let other servers write the sessions in which no turn runs, where there are others."""
    async def rest(self) -> None:
        """Nothing more will be asked of this service: leave the other servers, where there are others."""


ReplayStatus = Literal["replaying", "completed", "stopped", "autonomous"]


class ReplayState(Struct, frozen=True, kw_only=True):
    """How far a replay is; it is `autonomous` once the agent itself answers again."""

    source: str
    status: ReplayStatus
    speed: int
    turn: int
    turns: int


class Replays(Protocol):
    """Replays of sessions, at their own speed or faster."""

    async def can(self, owner: str, session_id: str) -> str | None:
        """Why the session cannot be replayed; None if it can."""
    async def start(
        self, owner: str, session_id: str, speed: int, metadata: JsonObject,
        on_change: Callable[[str, ReplayState], Awaitable[None]],
    ) -> m.SessionView:
        """Replay the session in a new session; `on_change` is called with its id and its state."""
    def state(self, owner: str, session_id: str) -> ReplayState:
        """The state of the replay in this session."""
    async def change(
        self, owner: str, session_id: str, *, speed: int | None = ..., stop: bool = ...,
    ) -> ReplayState:
        """Change the speed, or stop the replay: then the agent itself answers again."""
