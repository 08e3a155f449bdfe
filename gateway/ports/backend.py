"""What an agent promises, and what it is told: the turn it runs, its one way to pause, and what it says.

Which network addresses clients may name: asked by the rooms that hear clients, and by those that connect.
"""

import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

import gateway.model as m


class ScopedEvent(Struct, frozen=True):
    """An event said by a sub-agent; a bare event is the agent's own."""

    scope_id: str
    event: m.AnyEvent


BackendEvent = m.AnyEvent | ScopedEvent
BackendOutput = BackendEvent | list[BackendEvent]
"""What an agent says, or several such things at once: what came together is stored and sent on together."""


class Turn(Protocol):
    """What a backend knows of the turn it runs, and its one way to pause."""

    @property
    def session_id(self) -> str: ...
    @property
    def turn_id(self) -> str: ...
    @property
    def agent(self) -> m.AgentCard: ...
    @property
    def settings(self) -> m.Settings:
        """As they are now; options have their defaults filled in, secrets their values."""
    @property
    def metadata(self) -> Mapping[str, Any]:
        """The session's, as it is now; a `SessionUpdated` with other metadata changes it."""
    @property
    def command(self) -> m.SendMessage | m.Compact:
        """What started the turn."""
    @property
    def history(self) -> Sequence[m.HistoryEntry]:
        """All that was said before, compacted, ending with the message that started the turn."""
    @property
    def asked(self) -> Sequence[m.AnyAsk]:
        """What the turn asked last, in the order of the answers; empty before it has asked anything."""
    def mint(self, prefix: str) -> str:
        """A new id for a message, a block, a call or a scope."""
    async def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        """Suspend the turn until every ask is settled; the answers come in the order of the asks.

        No message may be open. An ask that was cancelled or has expired is answered by `Withdraw`.
        """


class Backend(Protocol):
    """An agent: an async generator of events, and nothing else.

    Raise a `GatewayError` to fail with a fault of your choice; anything else that is raised is a fault of the turn too,
    and whatever was open is closed by the engine. When the turn is interrupted the generator is closed.

    If the server stops while a turn waits for people, and the last answer comes after it is back, the turn is run anew
    up to the ask it waited at: what is said on the way is dropped, earlier asks are answered as they were, and from
    there on it counts. What some can do beside that is told in `ResumableBackend`, `StatefulBackend` and
    `ConfinableBackend`; the method is enough.
    """

    def run(self, turn: Turn) -> AsyncGenerator[BackendOutput, None]: ...
    async def close(self) -> None: ...


@runtime_checkable
class ResumableBackend(Backend, Protocol):
    """An agent that cannot do the same twice: it is given the answers, and goes on from what the history tells."""

    def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> AsyncGenerator[BackendOutput, None]: ...


@runtime_checkable
class StatefulBackend(Backend, Protocol):
    """An agent that keeps something for a session, and is told when the session was deleted."""

    async def forget(self, session_id: str) -> None: ...


class Addresses(Protocol):
    """What clients may name: public addresses, and what the operator has allowed."""

    def check(self, url: str, field: str) -> None:
        """Raise `Invalid`, with the name of the field, if a client may not name this address."""
    def problem(self, url: str) -> str | None:
        """Why a client may not name this address; None if nothing speaks against its text."""
    async def check_resolved(self, named: Sequence[tuple[str, str]]) -> None:
        """As `check` for several addresses, each with its field, after their host names were looked up."""
    async def problem_resolved(self, url: str) -> str | None:
        """As `problem`, after the host name was looked up."""
    async def looked_up(self, host: str, port: int | None = None) -> list[tuple[Any, Any, int, str, Any]]:
        """What DNS answers for this host, as `getaddrinfo` gives it; raises `OSError`."""
    def allows_name(self, host: str) -> bool:
        """Whether the operator has listed this host name; then it may lead anywhere."""
    def socket_factory(self, host: str) -> Callable[[tuple[Any, Any, int, str, Any]], socket.socket]:
        """The hook that opens sockets to this host, and refuses addresses that clients may not name."""


@runtime_checkable
class ConfinableBackend(Backend, Protocol):
    """An agent on this machine that is told what clients named: addresses, and files that it works beside."""

    def confine(self, addresses: Addresses, *, trust_uploads: bool) -> None:
        """Before the first turn: which addresses may be passed on, and whether uploads may be its configuration."""
