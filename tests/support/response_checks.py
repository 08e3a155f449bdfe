"""Checks JSON responses of a gateway, and the query parameters that handlers read, against the OpenAPI document.

A test fails if a response does not fit, or if a handler reads a parameter that the document does not have.

Only the operations that are called are described, each once for all tests, so that this costs little.
"""

from collections.abc import Awaitable, Callable, Iterator, KeysView, Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from gateway.api_documents import openapi_document
from gateway.api_documents.route_groups import ServedOperation
from gateway.app import Gateway
from tests.support.api_documents import JSON, DocumentChecker

Place = tuple[str, str]
"""A method and a path of the document."""
KEYS = frozenset(("token",))
"""What anything may be asked with that cannot have headers."""
_CHECKERS: dict[tuple[object, Place], tuple[DocumentChecker, Place]] = {}
"""By table, or by the name of a group that has none, and by the place below the mount."""


def check_responses(gateway: Gateway) -> list[str]:
    """From now on, collect what does not fit; the list grows while requests are answered."""
    problems: list[str] = []
    operations: dict[Place, ServedOperation] = {}

    def checker_at(place: Place) -> tuple[DocumentChecker, Place] | None:
        if not operations:
            operations.update(_operations_by_place(gateway))
        return _checker(operations[place], place, gateway) if place in operations else None

    @web.middleware
    async def watch_query(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        watched = WatchedQuery(request.query)
        request._cache["query"] = watched
        try:
            return await handler(request)
        finally:
            resource = request.match_info.route.resource
            place = (request.method.lower(), resource.canonical if resource is not None else "")
            if watched.names and (found := checker_at(place)) is not None:
                checker, (method, path) = found
                declared = {one["name"] for one in checker.openapi["paths"][path][method]["parameters"]}
                problems.extend(f"{' '.join(place)}: the handler reads '{name}' of the query, and does not declare it"
                                for name in sorted(watched.names - declared - KEYS))

    async def check(request: web.Request, response: web.StreamResponse) -> None:
        resource = request.match_info.route.resource
        if resource is None or not isinstance(response, web.Response) or response.content_type != JSON:
            return
        place = (request.method.lower(), resource.canonical)
        if isinstance(response.body, bytes) and (described := checker_at(place)) is not None:
            checker, known = described
            found = checker.response(*known, response.status, JSON, response.body)
            problems.extend(f"{' '.join(place)} {response.status}: {problem}" for problem in found)

    gateway.web.middlewares.append(watch_query)
    gateway.web.on_response_prepare.append(check)
    return problems


class WatchedQuery(Mapping[str, str]):
    """The query of a request, and the names that were asked for one by one; a whole query is read by a model."""

    def __init__(self, query: Any) -> None:
        self._query, self.names = query, set[str]()
        self._is_whole = False

    def __getitem__(self, name: str) -> str:
        if not self._is_whole:
            self.names.add(name)
        return str(self._query[name])

    def keys(self) -> KeysView[str]:
        """`dict(query)` begins with this."""
        self._is_whole = True
        return super().keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self._query)

    def __len__(self) -> int:
        return len(self._query)

    def getall(self, name: str, *otherwise: Any) -> Any:
        self.names.add(name)
        return self._query.getall(name, *otherwise)

    def getone(self, name: str, *otherwise: Any) -> Any:
        self.names.add(name)
        return self._query.getone(name, *otherwise)


def _operations_by_place(gateway: Gateway) -> Mapping[Place, ServedOperation]:
    found: dict[Place, ServedOperation] = {}
    for group in gateway.route_groups():
        for one in group.operations():
            found.setdefault((one.method, one.path), one)
    return found


def _checker(operation: ServedOperation, place: Place, gateway: Gateway) -> tuple[DocumentChecker, Place]:
    """What judges the responses of one operation: a document of a group that has nothing else."""
    (method, path), group = place, operation.group
    mount = gateway.contexts[group.name].mount if group.table is not None else ""
    key = (group.table or group.name, (method, path.removeprefix(mount)))
    if key not in _CHECKERS:
        document = openapi_document([replace(group, routes=[operation.route])], "")
        _CHECKERS[key] = DocumentChecker(document, {"channels": {}, "components": {"schemas": {}}}), place
    return _CHECKERS[key]
