"""The client role of a dialect: a remote server, its sessions and turns, and the decoder of its frames."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct

import gateway.model as m

from .backend import BackendEvent


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long an upstream is waited for, in seconds, and how often it is tried before it has said anything.

    `first_byte` is for the beginning of an answer, `idle` for each further piece of it, `total` for one attempt.
    """

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 60.0
    total: float = 600.0
    attempts: int = 3


class RemoteAddress(Struct, frozen=True, kw_only=True):
    """Where a server of a dialect is, and how to be let in."""

    url: str
    """What a user of the dialect would be given: the address its routes start from."""
    key: str = ""
    agent: str | None = None
    """Which of the server's agents to talk to, where it has several; its own choice otherwise."""
    patience: Timeouts = Timeouts()
    is_strict: bool = False
    """Whether a turn fails if its stream ends without its last event, though the server's history has it whole."""


class ParsedFrame(Struct, frozen=True):
    """One thing a server said on a stream: its name where the transport gives it one, and its body, parsed."""

    name: str
    body: Any
    id: str = ""


class RemoteAsk(Struct, frozen=True, kw_only=True):
    """The server waits for people; `ref` is whatever its dialect needs to take the answer."""

    ask: m.AnyAsk
    ref: str
    scope_id: str = m.ROOT


class RemoteTurnEnd(Struct, frozen=True, kw_only=True):
    """The server's turn is over; nothing follows."""

    stop_reason: m.StopReason = m.StopReason.END_TURN
    outcome: m.Outcome = m.Outcome.COMPLETED
    fault: m.Fault | None = None
    result: Any = None


DecodedItem = BackendEvent | RemoteAsk | RemoteTurnEnd
"""What a server lets us hear, in words of the house. Said events obey the laws of the stream."""


class Decoder(Protocol):
    """A dialect's stream read: frames in, words of the house out. Pure: no clock, no wire.

    It is the reverse of the dialect's `Projector`. Frames nobody knows say nothing; a frame that is broken raises
    `BackendFailed`. Several turns may follow each other in one hearing. Whoever derives from this need not care for
    what its dialect makes nothing of: the last three.
    """

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]: ...
    def end(self) -> Sequence[DecodedItem]:
        """The stream is over: the ends of what is open, without an `RemoteTurnEnd`."""
    @property
    def paused(self) -> bool:
        """Whether the server waits for answers: what it asked was heard, and it said that it waits."""
    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        """The server is being told this answer; what came of it is heard next."""
        return
    def configure(self, settings: m.Settings) -> None:
        """What a client has chosen and declared, where that is told nowhere else."""
        return
    def on_reconnect(self) -> None:
        """The stream was cut and is taken up again; what follows may repeat what was heard."""
        return


class NewRemoteSession(Struct, frozen=True, kw_only=True):
    """What a new session at the server should start with, as far as its dialect can say it."""

    settings: m.Settings = m.Settings()
    history: Sequence[m.SeedMessage] = ()
    title: str | None = None


class RemoteSession(Struct, frozen=True, kw_only=True):
    """A session that a server has, as far as its dialect tells of it."""

    session_id: str
    agent: str | None = None
    title: str | None = None
    status: str | None = None
    """In the word of the dialect."""
    updated_at: float | None = None


class RemoteTurn(Protocol):
    """A turn at the server, read as it happens; iterating it gives the items one by one.

    It ends after a `RemoteTurnEnd`, or when the server waits for people: then every `RemoteAsk` since it began is to be
    answered, all together. A stream that was cut is resumed if the dialect can; if not, the failure is raised. Closing
    a turn early leaves the server's turn alone: `Remote.interrupt` ends it.
    """

    async def read(self) -> Sequence[DecodedItem]:
        """All items that have arrived, at least one; empty at the end. The first read sends the request."""
    async def aclose(self) -> None: ...
    def __aiter__(self) -> AsyncIterator[DecodedItem]: ...
    async def __anext__(self) -> DecodedItem: ...


class Remote(Protocol):
    """A server of a dialect. One object for many sessions; every failure is a `GatewayError`."""

    supports_permissions: bool
    """Whether the dialect can tell a server which of its tools it may use, and which it has to ask about."""

    async def about(self) -> m.AgentCard:
        """What the server tells of the agent; with little more than a name where the dialect tells nothing."""
    async def open(self, opening: NewRemoteSession) -> str:
        """A new session; its id at the server."""
    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        """The sessions that the server has, so many at most, in its order."""
    async def join(self, session_id: str) -> RemoteSession:
        """Take up a session that the server has; what is said to it next goes on with it."""
    def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings = ...,
    ) -> RemoteTurn:
        """Start a turn."""
    def answer(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> RemoteTurn:
        """Answer all asks of the turn, which then continues."""
    async def interrupt(self, session_id: str) -> None:
        """End the turn that runs or waits, as far as the dialect can; nothing happens where none does."""
    async def close(self) -> None: ...
