"""Backends: what an agent implements, the turn that it is given, and the network addresses that it may connect to."""

import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonObject

from .resources import ServerTool, ToolOutcome


class ScopedEvent(Struct, frozen=True):
    """An event of a sub-agent; an event without a scope is of the agent itself."""

    scope_id: str
    event: m.AnyEvent


BackendEvent = m.AnyEvent | ScopedEvent
BackendOutput = BackendEvent | list[BackendEvent]
"""An event, or several events that arrived together: they are stored and sent together."""


class SkillReader(Protocol):
    """Reads the files of skills that sessions have."""

    async def read_file(self, owner: str, skill: m.SkillRef, path: str) -> m.SkillFile: ...


class MemoryRecall(Protocol):
    """Finds the memories of a user that fit a message, and counts each as used."""

    async def recall(self, owner: str, message: str, user: str | None) -> Sequence[m.MemoryRef]:
        """The memories that fit best; `user` is `Settings.memory_user`."""


class Turn(Protocol):
    """The turn that a backend runs; `ask` is the only way to pause it."""

    @property
    def session_id(self) -> str: ...
    @property
    def turn_id(self) -> str: ...
    @property
    def agent(self) -> m.AgentCard: ...
    @property
    def settings(self) -> m.Settings:
        """The current settings, with the defaults of options and the values of secrets."""
    @property
    def metadata(self) -> Mapping[str, Any]:
        """The current metadata of the session; a `SessionUpdated` event replaces it."""
    @property
    def command(self) -> m.SendMessage | m.Compact:
        """The command that started the turn."""
    @property
    def history(self) -> Sequence[m.HistoryEntry]:
        """The messages of the session, compacted, up to the message that started the turn."""
    @property
    def memories(self) -> Sequence[m.MemoryRef]:
        """The memories of the user that fit the message; none if the session does not use memories."""
    @property
    def asked(self) -> Sequence[m.AnyAsk]:
        """The asks of the last pause, in the order of their answers; empty before the first one."""
    def mint(self, prefix: str) -> str:
        """A new id for a message, a block, a call or a scope."""
    async def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        """Suspend the turn until every ask is settled; the answers come in the order of the asks.

        No message may be open. An ask that was cancelled or has expired is answered by `Withdraw`.
        """
    async def read_skill(self, name: str, path: str = ...) -> m.SkillFile:
        """A file of a skill of the session, SKILL.md if no other is named; `NotFound` if there is none."""


@runtime_checkable
class Backend(Protocol):
    """An agent: an async generator of events, and nothing else.

    Raise a `GatewayError` to fail with a fault of your choice; anything else that is raised is a fault of the turn too,
    and whatever was open is closed by the engine. When the turn is interrupted the generator is closed.

    If the server stops while a turn waits for people, and the last answer comes after it is back, the turn is run anew
    up to the ask it waited at: repeated events are dropped, earlier asks get their recorded answers, and from
    there on events are new. Further abilities of some backends are in `ResumableBackend`, `StatefulBackend` and
    `ConfinableBackend`; the method is enough.
    """

    def run(self, turn: Turn) -> AsyncGenerator[BackendOutput, None]: ...
    async def close(self) -> None: ...


@runtime_checkable
class ResumableBackend(Backend, Protocol):
    """An agent that cannot run a turn again: it is given the answers, and goes on from the history."""

    def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> AsyncGenerator[BackendOutput, None]: ...


@runtime_checkable
class StatefulBackend(Backend, Protocol):
    """An agent that keeps something for a session, and forgets it when the session is deleted."""

    async def forget(self, session_id: str) -> None: ...


@runtime_checkable
class ToolServingBackend(Backend, Protocol):
    """An agent with MCP servers of its own, whose tools can be listed, and called outside of a turn."""

    async def list_server_tools(self, server: str) -> Sequence[ServerTool]:
        """The tools of a server; raises a `GatewayError` if the server cannot be used."""
    async def call_server_tool(
        self, server: str, tool: str, input: JsonObject, out: Callable[[str], None],
    ) -> ToolOutcome: ...


class Addresses(Protocol):
    """The addresses that clients may name: public ones, and those that the operator has allowed."""

    def check(self, url: str, field: str) -> None:
        """Raise `Invalid`, with the name of the field, if a client may not name this address."""
    def problem(self, url: str) -> str | None:
        """Why a client may not name this address; None if its text is allowed."""
    async def check_resolved(self, named: Sequence[tuple[str, str]]) -> None:
        """As `check` for several addresses, each with its field, after their host names were looked up."""
    async def problem_resolved(self, url: str) -> str | None:
        """As `problem`, after the host name was looked up."""
    async def looked_up(self, host: str, port: int | None = None) -> list[tuple[Any, Any, int, str, Any]]:
        """The addresses of this host, as `getaddrinfo` returns them; raises `OSError`."""
    def allows_name(self, host: str) -> bool:
        """Whether the operator has allowed this host name, whatever its addresses are."""
    def socket_factory(self, host: str) -> Callable[[tuple[object, object, int, str, object]], socket.socket]:
        """The hook that opens sockets to this host, and refuses addresses that clients may not name."""


@runtime_checkable
class ConfinableBackend(Backend, Protocol):
    """An agent on this machine that gets addresses and files which clients have named."""

    def confine(self, addresses: Addresses, *, trust_uploads: bool) -> None:
        """Called before the first turn: which addresses are allowed, and whether uploads may configure the agent."""
