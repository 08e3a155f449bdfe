"""The protocols between rooms: what a backend, a log, a dialect and the session service promise each other."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from msgspec import Struct
from pydantic import BaseModel

from gateway.model import (
    ROOT,
    AgentCard,
    Answer,
    AnyAsk,
    AnyCommand,
    AnyEvent,
    Compact,
    Entry,
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
    def command(self) -> SendMessage | Compact:
        """What started the turn."""
    @property
    def history(self) -> Sequence[Entry]:
        """All that was said before, compacted, ending with the message that started the turn."""
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
    """

    def run(self, turn: Turn) -> AsyncGenerator[Said, None]: ...
    async def close(self) -> None: ...


# -- the log ----------------------------------------------------------------------------------------------------------

class SessionHead(Struct, frozen=True, kw_only=True):
    """One row of the list of sessions; `ordinal` grows with each session created and is never used again."""

    session_id: str
    owner: str
    ordinal: int


OnCommit = Callable[[Sequence[Record]], None]


class EventLog(Protocol):
    """An append-only log per session. Nothing may be shown to a client before `on_commit` has named it."""

    on_commit: OnCommit

    def append(self, record: Record) -> None:
        """Take the record; `on_commit` is told when it is safe, in order, several at a time where that is cheaper."""
    async def settled(self, session_id: str, seq: int) -> None:
        """Wait until that record is safe."""
    async def read(self, session_id: str, after: int = 0, limit: int | None = None) -> Sequence[Record]:
        """Records after `after`, oldest first; empty for a session nobody knows."""
    async def sessions(self, owner: str | None, before: int | None = None, limit: int = 50) -> Sequence[SessionHead]:
        """Newest first; `before` is the ordinal of the last one already seen; no owner means everybody's."""
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
    """What one record is on one dialect's wire: ready frames, and whether the turn yields here."""

    seq: int
    frames: tuple[bytes, ...]
    yields: bool


class Subscription(Protocol):
    """A cursor into one session's log, read in one dialect."""

    async def chunks(self) -> Sequence[Chunk]:
        """All that is ready after the cursor, waiting for the first; empty once the subscription is over."""
    def close(self) -> None: ...


class Sessions(Protocol):
    """What adapters may want of the engine. `owner` is the user; other people's sessions are not found."""

    async def create(
        self, owner: str, agent: str, *, settings: Settings = ..., history: Sequence[SeedMessage] = ...,
        title: str | None = ..., metadata: dict[str, Any] | None = ...,
    ) -> SessionView: ...
    async def get(self, owner: str, session_id: str) -> SessionView: ...
    async def list(
        self, owner: str, *, before: int | None = ..., limit: int = ...,
    ) -> tuple[list[SessionView], int | None]:
        """A page, newest first, and the cursor of the next one."""
    async def delete(self, owner: str, session_id: str) -> None: ...
    async def submit(self, owner: str, session_id: str, commands: Sequence[AnyCommand]) -> Receipt:
        """Accept all the commands or none, and return when they are in the log."""
    async def watch(
        self, owner: str, session_id: str, dialect: str, options: str = ..., *, after: int = ...,
    ) -> Subscription: ...
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


# -- dialects ---------------------------------------------------------------------------------------------------------

class Outbound(Protocol):
    """Records in, frames out; a pure function of its options and the records so far, with `record.at` as its clock."""

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
