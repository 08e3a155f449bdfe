"""The state of the CAS reference server: agents, sessions and resources."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

Body = dict[str, Any]
KINDS = {
    "environments": ("env", "environment"),
    "vaults": ("vault", "vault"),
    "memory_stores": ("memstore", "memory_store"),
}
"""The prefix of the ids of each kind of resource, and its type."""


def now() -> str:
    """The time, as CAS writes it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def mint(prefix: str) -> str:
    """A new id."""
    return f"{prefix}_{uuid4().hex}"


@dataclass(frozen=True)
class Item:
    """One thing on a session's stream: a stored event, or a piece (of one of two forms) of the event `of`."""

    body: Body
    form: str = "stored"
    of: str | None = None


@dataclass
class Session:
    """One session."""

    view: Body
    is_incremental: bool = False
    feed: list[Item] = field(default_factory=list)
    threads: dict[str, Body] = field(default_factory=dict)
    carried: set[str] = field(default_factory=set)
    """The ids of the idle events that a stream of the session has sent."""
    pending: dict[str, Body] = field(default_factory=dict)
    answers: dict[str, Body] = field(default_factory=dict)
    turn_id: str | None = None
    span_id: str | None = None
    is_waiting: bool = False
    is_closed: bool = False
    task: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def events(self) -> list[Body]:
        """The stored events."""
        return [item.body for item in self.feed if item.form == "stored"]

    @property
    def end(self) -> int:
        """The place after everything on the stream."""
        return len(self.feed)

    @property
    def is_busy(self) -> bool:
        return self.turn_id is not None

    def add(self, item: Item) -> None:
        """Put something on the stream and wake whoever follows it."""
        self.feed.append(item)
        self.wake()

    def wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()

    def show(self, **changed: Any) -> None:
        """Change what is shown of the session."""
        self.view |= changed | {"updated_at": now()}


@dataclass
class State:
    """All that the server keeps, by id."""

    things: dict[str, dict[str, Body]] = field(default_factory=lambda: {kind: {} for kind in (*KINDS, "files")})
    """The resources of each kind."""
    agents: dict[str, list[Body]] = field(default_factory=dict)
    """The versions of each agent."""
    sessions: dict[str, Session] = field(default_factory=dict)
