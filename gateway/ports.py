"""The protocols between rooms: what a backend, a log, a dialect and the session service promise each other."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct
from pydantic import BaseModel

from gateway.errors import GatewayError
from gateway.model import (
    ROOT,
    AgentCard,
    Answer,
    AnyAsk,
    AnyCommand,
    AnyEvent,
    CloseReason,
    Compact,
    CustomEvent,
    Entry,
    NoticePosted,
    Record,
    SeedMessage,
    SendMessage,
    SessionView,
    Settings,
)

Clock = Callable[[], float]
"""Seconds since the epoch."""


# -- agents -----------------------------------------------------------------------------------------------------------

class Scoped(Struct, frozen=True):
    """An event said by a sub-agent; a bare event is the agent's own."""

    scope_id: str
    event: AnyEvent


Said = AnyEvent | Scoped


class Turn(Protocol):
    """What a backend knows of the turn it runs, and its one way to pause."""

    @property
    def session_id(self) -> str: ...
    @property
    def turn_id(self) -> str: ...
    @property
    def agent(self) -> AgentCard: ...
    @property
    def settings(self) -> Settings:
        """As they are now; options have their defaults filled in, secrets their values."""
    @property
    def metadata(self) -> Mapping[str, Any]:
        """The session's, as it is now; a `SessionUpdated` with other metadata changes it."""
    @property
    def command(self) -> SendMessage | Compact:
        """What started the turn."""
    @property
    def history(self) -> Sequence[Entry]:
        """All that was said before, compacted, ending with the message that started the turn."""
    @property
    def asked(self) -> Sequence[AnyAsk]:
        """What the turn asked last, in the order of the answers; empty before it has asked anything."""
    def mint(self, prefix: str) -> str:
        """A new id for a message, a block, a call or a scope."""
    async def ask(self, *asks: AnyAsk, scope_id: str = ROOT) -> list[Answer]:
        """Suspend the turn until every ask is settled; the answers come in the order of the asks.

        No message may be open. An ask that was cancelled or has expired is answered by `Withdraw`.
        """


class Backend(Protocol):
    """An agent: an async generator of events, and nothing else.

    Raise a `GatewayError` to fail with a fault of your choice; anything else that is raised is a fault of the turn too,
    and whatever was open is closed by the engine. When the turn is interrupted the generator is closed.

    If the server stops while a turn waits for people, and the last answer comes after it is back, the turn is run anew
    up to the ask it waited at: what is said on the way is dropped, earlier asks are answered as they were, and from
    there on it counts. An agent that cannot do the same twice has `resume(turn, answers)` beside `run`: it is given the
    answers, and goes on from what the history tells.
    """

    def run(self, turn: Turn) -> AsyncGenerator[Said, None]: ...
    async def close(self) -> None: ...


# -- the log ----------------------------------------------------------------------------------------------------------

class SessionHead(Struct, frozen=True, kw_only=True):
    """One row of the list of sessions; `ordinal` grows with each session created and is never used again."""

    session_id: str
    owner: str
    ordinal: int
    head: int = 0
    """The number of its last record."""
    in_turn: bool = False
    """Whether a turn runs or waits in it."""


OnCommit = Callable[[Sequence[Record]], None]
OnTrouble = Callable[[GatewayError], None]


class EventLog(Protocol):
    """An append-only log per session. Nothing may be shown to a client before `on_commit` has named it."""

    on_commit: OnCommit
    on_trouble: OnTrouble
    """Told when nothing can be stored; what was taken is kept and stored as soon as that is possible again."""

    @property
    def trouble(self) -> GatewayError | None:
        """Why nothing can be stored just now."""
    async def open(self) -> None:
        """Make ready; raises a `GatewayError` that tells what is wrong with the place."""
    @property
    def size(self) -> int:
        """How many sessions there are."""
    def append(self, record: Record) -> None:
        """Take the record; `on_commit` is told when it is safe, in order, several at a time where that is cheaper."""
    async def settled(self, session_id: str, seq: int) -> None:
        """Wait until that record is safe; raises what the trouble is if it cannot be made so."""
    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Records after `after`, oldest first; empty for a session nobody knows."""
    async def spine(self, session_id: str) -> Sequence[Record]:
        """All records but the deltas: enough to know the state of a session in which no turn runs."""
    async def sessions(
        self, owner: str | None, before: int | None = None, limit: int = 50, *, after: int | None = None,
        oldest_first: bool = False,
    ) -> Sequence[SessionHead]:
        """Newest first unless said otherwise, between two ordinals; no owner means everybody's."""
    async def head(self, session_id: str) -> SessionHead | None: ...
    async def unfinished(self, owner: str | None = None) -> Sequence[SessionHead]:
        """The sessions in which a turn runs or waits."""
    async def place_of(self, word: str) -> str | None:
        """The session that a turn or an ask of this id belongs to."""
    async def forget(self, session_id: str) -> None:
        """Remove the session and all its records."""
    async def close(self) -> None: ...


# -- the session service ----------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a list of commands: their records, the turn they belong to, and where its stream begins."""

    turn_id: str | None
    records: tuple[Record, ...]
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
    def leaving(self) -> bool:
        """Whether it is over because the server stops: the reader should come again."""
    async def chunks(self) -> Sequence[Chunk]:
        """All that is ready after the cursor, waiting for the first; empty once the subscription is over."""
    def cut(self) -> None:
        """End it, because the reader takes nothing."""
    def close(self) -> None: ...


class Sessions(Protocol):
    """What adapters may want of the engine. `owner` is the user; other people's sessions are not found."""

    async def create(
        self, owner: str, agent: str, *, settings: Settings = ..., history: Sequence[SeedMessage] = ...,
        title: str | None = ..., metadata: dict[str, Any] | None = ...,
    ) -> SessionView: ...
    async def adopt(self, owner: str, records: Sequence[Record]) -> SessionView:
        """A new session of this owner, with all that records of another session tell; `Invalid` if they tell none."""
    async def get(self, owner: str, session_id: str) -> SessionView: ...
    async def find(self, owner: str, word: str) -> SessionView:
        """The session that a turn or an ask of this id belongs to."""
    async def active(self, owner: str) -> Sequence[SessionView]:
        """The sessions in which a turn runs or waits."""
    async def list(
        self, owner: str, *, before: int | None = ..., limit: int = ...,
    ) -> tuple[list[SessionView], int | None]:
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
    ) -> SessionView:
        """What is None stays; `metadata` takes the place of the old as a whole; only an idle session changes agents."""
    async def close(self, owner: str, session_id: str, reason: CloseReason) -> SessionView:
        """End whatever runs; from now on the session can be read, and nothing else."""
    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> SessionView:
        """Put a sub-agent away that has ended."""
    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = ...) -> SessionView:
        """Hide what was said after one of the view's checkpoints; the log keeps it."""
    async def perform(self, owner: str, session_id: str, backend: Backend | None) -> None:
        """From the next turn on this backend plays the agent of the session; None gives the agent its part back."""
    async def tell(self, owner: str, session_id: str, event: NoticePosted | CustomEvent) -> SessionView:
        """Let everybody who watches the session know of something beside the conversation."""
    async def delete(self, owner: str, session_id: str) -> None: ...
    async def submit(self, owner: str, session_id: str, commands: Sequence[AnyCommand]) -> Receipt:
        """Accept all the commands or none, and return when they are in the log."""
    async def watch(
        self, owner: str, session_id: str, dialect: str, options: str = ..., *, after: int = ...,
    ) -> Subscription: ...
    def read(
        self, owner: str, session_id: str, dialect: str, options: str = ..., *, after: int = ...,
        upto: int | None = ...,
    ) -> AsyncIterator[Chunk]:
        """What a subscriber would have got of the records after `after` and up to `upto`, without waiting for more."""
    async def records(self, owner: str, session_id: str, after: int = ..., limit: int | None = ...) -> Sequence[Record]:
        """What the log has of a session."""
    async def leave(self, owner: str, session_id: str, turn_id: str) -> None:
        """A client that started this turn has gone; what follows is `on_disconnect`'s to say."""


# -- what dialects share beside conversations -------------------------------------------------------------------------

class Resource(Struct, frozen=True, kw_only=True):
    """One version of one thing a user keeps here: an agent, an environment, a file, a memory …

    `body` is the house's spelling of it, never a dialect's; `secrets` are never shown to anybody. `parent` is the
    resource it belongs to, if it belongs to one. `ordinal` grows with each resource created and is never used again.
    """

    kind: str
    resource_id: str
    owner: str
    ordinal: int
    version: int
    created_at: float
    updated_at: float
    body: dict[str, Any]
    secrets: dict[str, str] = {}
    parent: str = ""
    archived_at: float | None = None

    def __repr__(self) -> str:
        """Without what it says: a body may be long, and secrets are nobody's to read in a journal."""
        return f"Resource({self.kind} '{self.resource_id}', version {self.version}, of '{self.owner}')"


class Resources(Protocol):
    """One store behind all dialects. Other people's resources are not found; old versions are kept until deletion."""

    async def create(
        self, kind: str, owner: str, body: dict[str, Any], *, secrets: dict[str, str] | None = ..., parent: str = ...,
        resource_id: str | None = ...,
    ) -> Resource: ...
    async def get(self, kind: str, owner: str, resource_id: str, version: int | None = ...) -> Resource: ...
    async def versions(self, kind: str, owner: str, resource_id: str) -> Sequence[Resource]:
        """Oldest first."""
    async def list(
        self, kind: str, owner: str, *, parent: str | None = ..., before: int | None = ..., after: int | None = ...,
        limit: int = ..., archived: bool = ..., oldest_first: bool = ...,
    ) -> Sequence[Resource]:
        """A page by ordinal, newest first unless said otherwise; archived ones only if asked for."""
    async def update(
        self, kind: str, owner: str, resource_id: str, body: dict[str, Any], *, secrets: dict[str, str] | None = ...,
        expected: int | None = ...,
    ) -> Resource:
        """A new version in the place of the old; `Conflict` if `expected` is not the current one."""
    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource: ...
    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        """The resource, its versions, and whatever belongs to it."""


class KeptAnswer(Struct, frozen=True, kw_only=True):
    """What was answered to a request that carried a key; `digest` stands for what was asked, if that is known."""

    digest: str
    status: int
    content_type: str
    body: bytes


AnswerPlace = tuple[str, str, str, str]
"""Owner, method, path and key."""


class Answers(Protocol):
    """The answers to requests that carried a key; bounded in number, bytes and age: the oldest make room."""

    async def find(self, place: AnswerPlace) -> KeptAnswer | None: ...
    async def keep(self, place: AnswerPlace, answer: KeptAnswer) -> None:
        """Returns when it is safe; takes the place of an older one, and is itself the last to make room."""


class Stored(Struct, frozen=True, kw_only=True):
    """Bytes that are kept: under which id, how many, and which."""

    file_id: str
    size: int
    sha256: str


class Link(Struct, frozen=True, kw_only=True):
    """What a signed link stands for: a file, how to call it, and until when."""

    file_id: str
    name: str
    media_type: str
    expires: float


class Files(Protocol):
    """Bytes by id. Whose they are and what they are called is a `Resource`'s to say."""

    def admit(self, media_type: str) -> None:
        """Refuse a type of file that is not taken here."""
    async def store(self, chunks: AsyncIterator[bytes]) -> Stored:
        """Take all the chunks, or nothing."""
    def path(self, file_id: str) -> Path: ...
    async def remove(self, file_id: str) -> None: ...
    def link(self, file_id: str, name: str, media_type: str) -> tuple[str, float]:
        """A word that stands for the file for a while, and when it ceases to."""
    def opened(self, word: str) -> Link:
        """What such a word stands for."""


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
    ) -> SessionView:
        """A new session in which this one happens again; `on_change` is told of its id and how far it is."""
    def state(self, owner: str, session_id: str) -> ReplayState:
        """Of the session in which the replay happens."""
    async def change(
        self, owner: str, session_id: str, *, speed: int | None = ..., stop: bool = ...,
    ) -> ReplayState:
        """Another speed from now on, or the end of it: the agent has its part back."""


class IssuedKey(Protocol):
    """A key as its user may see it: without the key."""

    @property
    def key_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def masked(self) -> str: ...
    @property
    def created(self) -> datetime: ...
    @property
    def used(self) -> datetime | None: ...


class KeyRing(Protocol):
    """The keys that users make for themselves; other people's are not found."""

    def issue(self, user: str, label: str, prefix: str = ...) -> tuple[IssuedKey, str]:
        """A new key and its token, which can be seen this once."""
    def of(self, user: str) -> Sequence[IssuedKey]: ...
    def find(self, user: str, key_id: str) -> IssuedKey: ...
    def relabel(self, user: str, key_id: str, label: str) -> IssuedKey: ...
    def revoke(self, user: str, key_id: str) -> None: ...


# -- dialects ---------------------------------------------------------------------------------------------------------

class Outbound(Protocol):
    """Records in, frames out; a pure function of its options and the records so far, with `record.at` as its clock.

    One that spares itself work where nobody wants the frames has `skip(record)` beside `feed`.
    """

    def feed(self, record: Record) -> tuple[bytes, ...]: ...
    def flush(self, now: float) -> tuple[bytes, ...]:
        """What was held back and is due."""
    @property
    def deadline(self) -> float | None:
        """When `flush` should be called, if nothing else happens first."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One client protocol: what its table must spell, what its clients may send, and where it is served."""

    name: str
    mount: str
    outbound: Callable[[Any, str], Outbound]
    """(its compiled table, the options of a subscription as one word) → a fresh projector."""
    routes: Callable[..., Any]
    cues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Cues that its outbound raises beside the house's events, each with the names it binds."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names that its outbound binds on top of the fields of a house event, by event name."""
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Client messages that become commands, each with the names its inbound binds."""
    objects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """REST bodies the table spells, each with the names its views bind."""
    settings: type[BaseModel] | None = None
    """What config.yaml may say under the dialect's name, beside `mount`."""
    examples: Callable[[str, str, str], list[str]] | None = None
    """(address, agent, how to show a key) → command lines to try, printed when a server starts."""
    framings: tuple[Literal["json", "sse"], ...] = ("json",)
    """How its frames are put on the wire; its table is checked against each."""
    needs: Literal["turn", "session"] = "session"
    """From where its outbound must be fed to be in the right state: the start of the turn, or of the session."""
    hearing: Callable[..., Any] | None = None
    """(a mint) → a fresh `gateway.upstream.Hearing`: the dialect's stream read instead of written."""
    remote: Callable[..., Any] | None = None
    """(a `gateway.upstream.RemoteAddress`) → a `gateway.upstream.Remote`: the dialect spoken as a client."""
    overheard: Callable[..., Any] | None = None
    """(a `gateway.upstream.Frame` of either side, a view of what is asked, the table) → the commands given in it."""
    plain: str = ""
    """The options of a plain stream, for those who want to read one and have no wishes."""
