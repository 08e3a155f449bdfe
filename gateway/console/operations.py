"""The operations of the API: method, path, models and handler of each; routes and OpenAPI are made of them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web
from msgspec import Struct
from pydantic import BaseModel, ConfigDict

from gateway.http import accepts_any_content_type, admins_only, delay_100_continue, public, validate

API = "/console/api"
ConsoleHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Q = TypeVar("Q", bound="ConsoleQuery")
JSON, SSE, OCTETS = "application/json", "text/event-stream", "application/octet-stream"


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
