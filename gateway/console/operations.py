"""The operations of the API: method, path, models and handler of each; routes and OpenAPI are made of them."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web
from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from gateway.errors import Overloaded
from gateway.http import (
    JSON,
    OCTETS,
    SSE,
    Answers,
    Metrics,
    accepts_any_content_type,
    admins_only,
    delay_100_continue,
    public,
    validate,
)
from gateway.migration import ServerImports
from gateway.ports import Addresses, Clock, Files, Resources, SessionService, Workspaces
from gateway.resources import KeyService
from gateway.usage import UsageCounts

from .columns import ConsoleColumns, ServedParts

__all__ = [
    "API",
    "JSON",
    "OCTETS",
    "SSE",
    "ConsoleHandler",
    "ConsoleQuery",
    "ConsoleServices",
    "DialectPlace",
    "Operation",
    "console_routes",
    "read_query",
]
API = "/console/api"
ConsoleHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Q = TypeVar("Q", bound="ConsoleQuery")


@dataclass(frozen=True, kw_only=True)
class DialectPlace:
    """A served dialect: where it is mounted."""

    name: str
    mount: str


@dataclass(frozen=True, kw_only=True)
class ConsoleServices:
    """The services of one server; what a reload can change is asked for each time."""

    sessions: SessionService
    resources: Resources
    files: Files
    parts: Callable[[], ServedParts]
    columns: ConsoleColumns
    places: Sequence[DialectPlace]
    watchers: Callable[[str], Collection[str]]
    """(session) → the dialects whose clients watch the session on this server."""
    auth: tuple[str, ...]
    version: str
    clock: Clock
    heartbeat: Callable[[], float]
    send_timeout: Callable[[], float]
    limits: Callable[[], Mapping[str, Any]]
    addresses: Callable[[], Addresses]
    workspaces: Workspaces
    data: Path
    metrics: Metrics
    keys: KeyService
    usage: UsageCounts
    imports: ServerImports
    is_stopping: Callable[[], bool] = lambda: False
    check_stored_bytes: Callable[[str, int], None] = lambda owner, size: None
    default_agent: Callable[[], str] = lambda: ""
    started_at: float = field(default=0.0)

    def check_open(self) -> None:
        """Refuse new streams while the server is about to stop."""
        if self.is_stopping():
            raise Overloaded("the server is shutting down; try again when it is back")


class ConsoleQuery(BaseModel):
    """The base of what may stand in a query: an unknown parameter is refused."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation: `answer` is the type of its JSON body, or of the data of its server-sent events by event name."""

    method: str
    path: str
    handler: ConsoleHandler
    summary: str
    status: int = 200
    answer: Any = None
    events: dict[str, Any] = field(default_factory=dict)
    media_type: str = JSON
    query: type[ConsoleQuery] | None = None
    body: type[BaseModel] | type[Struct] | None = None
    body_type: str = JSON
    is_public: bool = False
    for_admins: bool = False


def console_routes(operations: Iterable[Operation]) -> list[web.RouteDef]:
    """The routes of the operations, below the path of the API."""
    return delay_100_continue([
        web.route(one.method, f"{API}{one.path}", _with_policy(one)) for one in operations
    ])


def _with_policy(one: Operation) -> ConsoleHandler:
    @Answers(
        one.answer, status=one.status, reads=one.body, reads_type=one.body_type, query=one.query or {},
        media_type=one.media_type, events=one.events, summary=one.summary,
    )
    async def handle(request: web.Request) -> web.StreamResponse:
        return await one.handler(request)

    handler: ConsoleHandler = handle
    if one.is_public:
        handler = public(handler)
    if one.for_admins:
        handler = admins_only(handler)
    return accepts_any_content_type(handler) if one.body_type == OCTETS else handler


def read_query(request: web.Request, model: type[Q]) -> Q:
    """The query of the request; raises `Invalid`, which names the parameter."""
    return validate(model, dict(request.query))
