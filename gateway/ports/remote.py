"""The client role of a dialect: a remote server, its sessions and turns, and the decoder of its frames."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonValue

from .backend import BackendEvent


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long an upstream is waited for, in seconds, and how many attempts there are before its first frame.

    `first_byte` is for the beginning of an answer, `idle` for each further piece of it, `total` for one attempt.
    """

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 60.0
    total: float = 600.0
    attempts: int = 3


class RemoteAddress(Struct, frozen=True, kw_only=True):
    """The address of a server of a dialect, and the key for it."""

    url: str
    """The address from which the routes of the dialect start."""
    key: str = ""
    agent: str | None = None
    """The agent that is wanted, if the server has several; otherwise the server chooses."""
    patience: Timeouts = Timeouts()
    is_strict: bool = False
    """Whether a turn fails if its stream ends without its last event, though the server's history has it whole."""


class ParsedFrame(Struct, frozen=True):
    """One frame of a server's stream: its name, if the transport gives it one, and its parsed body."""

    name: str
    body: Any
    id: str = ""


class RemoteAsk(Struct, frozen=True, kw_only=True):
    """The server waits for people; `ref` is what the dialect needs to send the answer."""

    ask: m.AnyAsk
    ref: str
    scope_id: str = m.ROOT


class RemoteTurnEnd(Struct, frozen=True, kw_only=True):
    """The server's turn is over; nothing follows."""

    stop_reason: m.StopReason = m.StopReason.END_TURN
    outcome: m.Outcome = m.Outcome.COMPLETED
    fault: m.Fault | None = None
    result: JsonValue = None


DecodedItem = BackendEvent | RemoteAsk | RemoteTurnEnd
"""What is decoded from a server's frames: canonical events that obey the laws of the stream, asks, and the end."""


class Decoder(Protocol):
    """Decodes the stream of a server: frames in, canonical events, asks and ends out. No clock, no I/O.

    A decoder is the reverse of a `Projector`. Unknown frames give nothing; a malformed frame raises `BackendFailed`.
    One decoder may decode several turns that follow each other.
    """

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]:
        """The items of one frame."""
    def end(self) -> Sequence[DecodedItem]:
        """The stream is over: the ends of what is open, without a `RemoteTurnEnd`."""
    @property
    def paused(self) -> bool:
        """Whether the server waits for answers: it has sent its asks, and that it waits."""
    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        """The server gets this answer; nothing is to be done if the frames after it show the effect."""
        return
    def configure(self, settings: m.Settings) -> None:
        """The settings of the session, for a protocol whose frames do not contain them."""
        return
    def on_reconnect(self) -> None:
        """The stream was cut and is resumed; the next frames may repeat earlier ones."""
        return


class NewRemoteSession(Struct, frozen=True, kw_only=True):
    """What a new session at the server starts with, as far as the dialect supports it."""

    settings: m.Settings = m.Settings()
    history: Sequence[m.SeedMessage] = ()
    title: str | None = None


class RemoteSession(Struct, frozen=True, kw_only=True):
    """A session that a server has, with the fields that the dialect has."""

    session_id: str
    agent: str | None = None
    title: str | None = None
    status: str | None = None
    """In the word of the dialect."""
    updated_at: float | None = None
    created_at: float | None = None


class SessionPlaces(Struct, frozen=True, kw_only=True):
    """What of a session a server has a place for, beside messages."""

    client_tools: bool = False
    """Tools that the server's agent calls and its client runs: those of the gateway can be among them."""
    mcp_servers: bool = False
    """MCP servers that the server itself connects to, without a token."""
    variables: bool = False
    """Variables of a message, which describe the surroundings of the user to the agent, memories among them."""


class RemoteTurn(Protocol):
    """A turn at the server, read as it happens; to iterate over it gives the items one by one.

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
    """Whether the dialect can say which tools a server may use, and for which it must ask."""

    async def places(self) -> SessionPlaces:
        """What of a session the server has a place for."""
    async def about(self) -> m.AgentCard:
        """The server's description of the agent; little more than a name if the dialect has no description."""
    async def open(self, opening: NewRemoteSession) -> str:
        """A new session; its id at the server."""
    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        """The sessions of the server, so many at most, in the order of the server."""
    async def join(self, session_id: str) -> RemoteSession:
        """Continue a session of the server; the next turn is a turn of it."""
    def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings = ...,
    ) -> RemoteTurn:
        """Start a turn."""
    def answer(self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]]) -> RemoteTurn:
        """Answer all asks of the turn, which then continues."""
    async def interrupt(self, session_id: str) -> None:
        """End the turn that runs or waits, as far as the dialect can; without such a turn nothing happens."""
    async def close(self) -> None: ...
