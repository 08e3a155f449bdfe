"""Counts every request of a dialect: by the caller's key and program, and by the template of the route."""

from collections.abc import Callable, Iterable

from aiohttp import web

from gateway.http import CALLER, client_name, current_caller, is_counted_by_message
from gateway.ports import Caller

from .usage_counts import ENDPOINT, UsageCounts

NO_KEY = "-"
"""The key of requests that need none."""
UNKNOWN_ROUTE = "(no such route)"


def key_of(caller: Caller | None) -> str:
    """The name under which a caller is counted, never the secret."""
    return NO_KEY if caller is None or not caller.credential else caller.key or caller.user


class RequestCounter:
    """Counts requests and, where they are only a transport, the messages over sockets."""

    def __init__(self, counts: UsageCounts, dialect_at: Callable[[str], str | None]) -> None:
        self._counts, self._dialect_at = counts, dialect_at
        self._templates: dict[str, str] = {}

    def add_routes(self, dialect: str, routes: Iterable[web.RouteDef]) -> None:
        """Count requests to these routes as requests of the dialect."""
        self._templates |= {route.path: dialect for route in routes}

    def count(self, request: web.Request) -> None:
        """Count a request before it is served, since a stream may last for days; its caller is known."""
        resource = request.match_info.route.resource
        if resource is None:
            self._count(request, self._dialect_at(request.path), UNKNOWN_ROUTE)
        elif not is_counted_by_message(request.match_info.handler):
            template = resource.canonical
            self._count(request, self._dialect_of(template), f"{request.method} {template}")

    def _dialect_of(self, template: str) -> str | None:
        """The dialect of a route; below the prefix of an outer application a template is longer than its route's."""
        if template in self._templates:
            return self._templates[template]
        return next((dialect for path, dialect in self._templates.items() if template.endswith(path)), None)

    def _count(self, request: web.Request, dialect: str | None, endpoint: str) -> None:
        if dialect is not None:
            caller = request.get(CALLER)
            client = caller.client if caller is not None else client_name(request.headers)
            self._counts.count(dialect, key_of(caller), client, ENDPOINT, endpoint)

    def count_message(self, dialect: str, endpoint: str) -> None:
        """Count a message that the current caller sent over a socket."""
        caller = current_caller()
        if caller is not None:
            self._counts.count(dialect, key_of(caller), caller.client, ENDPOINT, endpoint)

