"""The state of the ZenFlux reference server: conversations, sessions and requests that wait for the user."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from time import monotonic
from typing import Any
from uuid import uuid4

Body = dict[str, Any]
_changes = count(1)


class Stopped(Exception):
    """The user stopped the run."""


class Refusal(Exception):
    """A request fails: with this HTTP status and this code on the socket."""

    def __init__(self, status: int, code: str, words: str) -> None:
        super().__init__(words)
        self.status, self.code, self.words = status, code, words


def event_time() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def object_time() -> str:
    return f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


@dataclass
class Conversation:
    """A conversation and its messages."""

    user_id: str
    title: str
    id: str = field(default_factory=lambda: str(uuid4()))
    created_at: str = field(default_factory=object_time)
    metadata: Body = field(default_factory=dict)
    messages: list[Body] = field(default_factory=list)
    changed: int = field(default_factory=lambda: next(_changes))
    updated_at: str = field(default_factory=object_time)

    def touch(self) -> None:
        self.changed, self.updated_at = next(_changes), object_time()

    def add(self, role: str, content: Any, name: str | None = None, status: str = "completed") -> None:
        message = {"id": name or str(uuid4()), "conversation_id": self.id, "role": role, "content": content}
        self.messages.append(message | {"status": status, "created_at": object_time(), "metadata": {}})
        self.touch()


@dataclass
class Request:
    """Something the user is asked to confirm."""

    content: Body
    answer: "asyncio.Future[Any]"

    @property
    def id(self) -> str:
        return str(self.content["request_id"])


@dataclass
class Session:
    """One run."""

    user_id: str
    conversation: Conversation
    message: str
    is_streamed: bool = True
    has_rounds: bool = True
    id: str = field(default_factory=lambda: f"sess-{uuid4().hex}")
    message_id: str = field(default_factory=lambda: f"msg-{uuid4().hex}")
    start_time: str = field(default_factory=object_time)
    began: float = field(default_factory=monotonic)
    seq: int = 0
    blocks: list[Body] = field(default_factory=list)
    index: int = 0
    open_block: int | None = None
    is_over: bool = False
    waits_for: str | None = None
    request: Request | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    going_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def pause(self, seconds: float) -> None:
        """Let time pass, unless the run is stopped."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return
        raise Stopped

    async def wait(self, what: str) -> None:
        """Wait until somebody says to go on."""
        self.going_on.clear()
        self.waits_for = what
        await self.either(self.going_on.wait())
        self.waits_for = None

    async def either(self, work: Any) -> Any:
        """What the work gives, unless the run is stopped before."""
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if self.stopping.is_set():
                raise Stopped
            return task.result()
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()


@dataclass
class Skill:
    """A skill of the library, or the copy of it that an agent has."""

    name: str
    owner: str
    content: str
    files: dict[str, bytes]
    is_enabled: bool = True
    created_at: str = field(default_factory=object_time)


@dataclass
class Memory:
    """What is kept of a user."""

    id: str
    user_id: str
    text: str
    metadata: Body
    created_at: str = field(default_factory=object_time)


@dataclass
class State:
    """All that the server keeps, by id."""

    conversations: dict[str, Conversation] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    agents: dict[str, Body] = field(default_factory=dict)
    """Those that clients made, by their ids."""
    skills: dict[tuple[str, str], Skill] = field(default_factory=dict)
    """By owner and name."""
    memories: dict[str, Memory] = field(default_factory=dict)
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    """By group and key, what is set."""
    tools: dict[str, Body] = field(default_factory=dict)
    """Those that clients registered, by their names."""
    mcp_servers: dict[str, Body] = field(default_factory=dict)
    enabled: dict[str, Body] = field(default_factory=dict)
    """The MCP servers that agents have, by the ids of the agents and the names of the servers."""
