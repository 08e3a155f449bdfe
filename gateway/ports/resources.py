"""The resources that dialects share beside sessions: stored objects, responses, files and token buckets."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonObject


class Resource(Struct, frozen=True, kw_only=True):
    """One version of one object of a user: an agent, an environment, a file, a memory …

    `body` is in the gateway's own format, never in a dialect's; `secrets` are never shown to anybody. `parent` is the
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
        """Without body and secrets, which do not belong in logs."""
        return f"Resource({self.kind} '{self.resource_id}', version {self.version}, of '{self.owner}')"


class Ranking(Struct, frozen=True, kw_only=True):
    """Resources that have some of the terms that were asked for, each with how many of `terms` it has, most first."""

    terms: int
    found: Sequence[tuple[Resource, int]] = ()


Amendment = Callable[[JsonObject], JsonObject]
"""Makes a body of a body; it may be called more than once, and in another thread."""


class Resources(Protocol):
    """One store for all dialects. The resources of other owners are not found; old versions are kept until deletion."""

    async def create(
        self, kind: str, owner: str, body: JsonObject, *, secrets: dict[str, str] | None = ..., parent: str = ...,
        resource_id: str | None = ..., most: int | None = ..., most_below: int | None = ...,
    ) -> Resource:
        """Create a resource; `Conflict` if its owner has `most` of this kind, or `most_below` with this parent."""
    async def get(self, kind: str, owner: str, resource_id: str, version: int | None = ...) -> Resource: ...
    async def versions(self, kind: str, owner: str, resource_id: str) -> Sequence[Resource]:
        """All versions, oldest first."""
    async def list(
        self, kind: str, owner: str, *, parent: str | None = ..., before: int | None = ..., after: int | None = ...,
        limit: int = ..., archived: bool = ..., oldest_first: bool = ...,
    ) -> Sequence[Resource]:
        """A page by ordinal, newest first by default; archived ones only if `archived` is set."""
    async def owners(self) -> Mapping[str, frozenset[str]]:
        """Everybody who has resources, and of which kinds, archived ones too; the whole store is looked through."""
    async def kinds_in_use(self, owner: str, kinds: Collection[str]) -> frozenset[str]:
        """Those of the kinds that the owner has resources of, other than archived ones; one read of the store."""
    async def update(
        self, kind: str, owner: str, resource_id: str, body: JsonObject, *, secrets: dict[str, str] | None = ...,
        expected: int | None = ...,
    ) -> Resource:
        """Store a new version; `Conflict` if `expected` is not the current version."""
    async def amend(self, kind: str, owner: str, resource_id: str, amendment: Amendment) -> Resource:
        """Change the newest version itself, for what is no version: how often a resource was used, and when.

        The resource keeps its version and its time of change; the fields by which it is found must stay as they are.
        """
    async def with_terms(self, kind: str, owner: str, terms: Collection[str]) -> Sequence[Resource]:
        """The resources that have all these terms (`gateway.search_terms`), newest first; archived ones have none."""
    async def ranked(
        self, kind: str, owner: str, terms: Collection[str], *, common: int, limit: int, offset: int = ...,
    ) -> Ranking:
        """A page of the resources that have any of these terms: those with most of them first, then the newest.

        A term that more than `common` resources have counts only if the resources have no other of the terms.
        """
    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource: ...
    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        """Delete the resource, its versions, and all that belongs to it."""


class SharedKind(StrEnum):
    """The kinds of resources that dialects may show beside sessions."""

    AGENT = "agent"
    TOOL = "tool of an agent"
    MCP_SERVER = "MCP server"
    SKILL = "skill"
    MEMORY = "memory"
    SCHEDULE = "schedule"
    SETTINGS = "settings of a user"
    FILE = "file"
    KEY = "key"
    DOCUMENT = "document"


class ShownResource(Struct, frozen=True):
    """Where a dialect shows a kind: the paths below its mount, and in words what else it has of the kind."""

    paths: tuple[str, ...] = ()
    words: str = ""


class OperatorOffers(Struct, frozen=True, kw_only=True):
    """What the operator offers to all users: a folder of documents and, if there is one, a folder of skills."""

    docs: Path
    skills: Path | None = None
    execute: tuple[str, ...] = ()
    """The tools that clients may run outside of a conversation."""


class ToolOutcome(Struct, frozen=True, kw_only=True):
    """What a tool has returned, as text."""

    text: str
    is_error: bool = False


class ToolRunner(Protocol):
    """Runs tools of the server outside of a conversation."""

    @property
    def specs(self) -> Mapping[str, m.ToolSpec]:
        """The tools that can run, by name."""
    async def run(self, name: str, input: JsonObject, out: Callable[[str], None]) -> ToolOutcome:
        """Run a tool; `out` gets its progress messages."""


class ServerTool(Struct, frozen=True, kw_only=True):
    """A tool of an MCP server, and what a call of it needs."""

    spec: m.ToolSpec
    permission: m.Permission = m.Permission.ASK


class ServerTools(Struct, frozen=True, kw_only=True):
    """The tools of an MCP server as it listed them last; `is_connected` says whether it answers now."""

    tools: tuple[ServerTool, ...] = ()
    is_connected: bool = False
    connected_at: float | None = None


class McpTools(Protocol):
    """Connects to MCP servers in order to list their tools, and to call those of the operator's servers.

    A server that does not answer within a few seconds is not connected. Answers are remembered for a while.
    """

    async def of_agent(self, agent: str, server: str) -> ServerTools:
        """The tools of a server that config.yaml gives to an agent."""
    async def of_user(self, owner: str, settings: m.Settings) -> ServerTools:
        """The tools of the one server that these settings of a session name."""
    async def call(
        self, agent: str, server: str, tool: str, input: JsonObject, out: Callable[[str], None],
    ) -> ToolOutcome:
        """Call a tool of a server that config.yaml gives to an agent; `out` gets its progress messages."""


class TaskStarter(Protocol):
    """Starts scheduled tasks by hand."""

    @property
    def is_running(self) -> bool:
        """Whether this server starts tasks that are due."""
    async def start_now(self, owner: str, task_id: str) -> object:
        """Start a task whatever its timetable says, and return when it has begun."""
    async def wait_until_ended(self, task_id: str, seconds: float) -> None:
        """Wait until the run of a task that was started by hand has ended, for so many seconds at most."""


class SettingsReload(Protocol):
    """Asks the process of the server to read its settings again."""

    async def reload(self) -> str | None:
        """Read the settings again; the problem, if there is one: then the settings of before stay in force.

        Raises `RateLimited` if the last request was less than a second ago.
        """


class AgentCalls(Struct, frozen=True, kw_only=True):
    """How often a user has called an agent since the server started, how many turns failed, and when the last ended."""

    total: int = 0
    failed: int = 0
    last_used_at: float | None = None


class StoredResponse(Struct, frozen=True, kw_only=True):
    """The response to a request with an idempotency key; `digest` is the hash of the request, if that is known."""

    digest: str
    status: int
    content_type: str
    body: bytes


IdempotencyKey = tuple[str, str, str, str]
"""Owner, method, path and key of a request."""
CURRENT_IDEMPOTENCY_KEY = ContextVar[IdempotencyKey | None]("current_idempotency_key", default=None)
"""The key of the request that is being executed. Of several servers, only the writer of a session can know that another
server has received the request, too: what it does under one key, it does once."""


class ResponseStore(Protocol):
    """The responses to requests with an idempotency key, limited in number, bytes and age; the oldest are dropped."""

    async def claim(self, place: IdempotencyKey) -> None:
        """Return when no other server executes the request, nor will until `store` or `release`."""
    async def release(self, place: IdempotencyKey) -> None:
        """This server does not execute the request, or not any more."""
    async def find(self, place: IdempotencyKey) -> StoredResponse | None: ...
    async def store(self, place: IdempotencyKey, answer: StoredResponse) -> None:
        """Store the response in place of an older one; return when it is stored, and the key is released."""


class TokenBuckets(Protocol):
    """Buckets of tokens, one per owner, that several servers share."""

    async def grant(self, owner: str, rate: float, size: int, wanted: int) -> tuple[int, float]:
        """How many of the wanted tokens there are; if none, after how many seconds there is one.

        The bucket holds `size` tokens, and `rate` come every second.
        """
