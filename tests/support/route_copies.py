"""Registers the routes of the gateways of tests as aiohttp does, but works out only once what follows from their paths.

Every gateway registers some hundred routes, with the paths of the gateway before it. Routes with new paths are
registered by aiohttp, with all its checks; others are copies of those, with the handlers of their own gateway.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import hdrs, web
from aiohttp.web_urldispatcher import (
    AbstractRoute,
    Resource,
    ResourceRoute,
    UrlDispatcher,
    _default_expect_handler,
)

Paths = tuple[tuple[str, str, bool], ...]
"""Method and path of each route, and whether a HEAD request is a GET request."""
AddRoutes = Callable[[UrlDispatcher, Iterable[Any]], list[AbstractRoute]]


@dataclass(frozen=True)
class ResourceCopy:
    """A resource that aiohttp has made, without its routes."""

    kind: type[Resource]
    fields: dict[str, Any]
    index_key: str
    routes: int
    """How many of the routes it has."""

    def make(self) -> Resource:
        made = self.kind.__new__(self.kind)
        vars(made).update(self.fields, _routes={}, _any_route=None, _allowed_methods=set())
        return made


def _route(resource: Resource, method: str, definition: web.RouteDef) -> ResourceRoute:
    made = ResourceRoute.__new__(ResourceRoute)
    vars(made).update(
        _method=method, _handler=definition.handler, _resource=resource,
        _expect_handler=definition.kwargs.get("expect_handler") or _default_expect_handler,
    )
    if method == hdrs.METH_ANY:
        vars(resource)["_any_route"] = made
    vars(resource)["_routes"][method] = made
    vars(resource)["_allowed_methods"].add(method)
    return made


class RouteCopies:
    """What `UrlDispatcher.add_routes` has done with each list of paths."""

    def __init__(self, add_routes: AddRoutes) -> None:
        self._add_routes = add_routes
        self._known: dict[Paths, list[ResourceCopy] | None] = {}

    def add(self, router: UrlDispatcher, routes: Iterable[Any]) -> list[AbstractRoute]:
        """In place of `UrlDispatcher.add_routes`."""
        definitions = list(routes)
        paths = _paths(definitions)
        resources: list[Resource] = router._resources  # type: ignore[assignment]
        if not paths or (resources and resources[-1].raw_match(paths[0][1])):
            return self._add_routes(router, definitions)
        if paths not in self._known:
            before = len(resources)
            added = self._add_routes(router, definitions)
            self._known[paths] = _copies(router, resources[before:], definitions)
            return added
        copies = self._known[paths]
        return self._add_routes(router, definitions) if copies is None else _added(router, copies, definitions)


def _paths(definitions: list[Any]) -> Paths:
    """Nothing, if there is a definition of another kind than the usual."""
    if any(type(one) is not web.RouteDef or one.kwargs.get("name")
           or not one.kwargs.keys() <= {"expect_handler", "name", "allow_head"} for one in definitions):
        return ()
    return tuple((one.method, one.path, _is_for_head(one)) for one in definitions)


def _is_for_head(definition: web.RouteDef) -> bool:
    return definition.method == hdrs.METH_GET and definition.kwargs.get("allow_head", True)


def _added(router: UrlDispatcher, copies: list[ResourceCopy], definitions: list[web.RouteDef]) -> list[AbstractRoute]:
    added: list[AbstractRoute] = []
    rest = iter(definitions)
    for copy in copies:
        resource = copy.make()
        router._resources.append(resource)
        router._resource_index.setdefault(copy.index_key, []).append(resource)
        for definition in (next(rest) for _ in range(copy.routes)):
            if _is_for_head(definition):
                _route(resource, hdrs.METH_HEAD, definition)
            added.append(_route(resource, definition.method, definition))
    return added


def _copies(
    router: UrlDispatcher, resources: list[Resource], definitions: list[web.RouteDef],
) -> list[ResourceCopy] | None:
    """What is needed to add these resources again; None if a copy would not be the same."""
    copies = [
        ResourceCopy(
            type(one), {name: value for name, value in vars(one).items() if name not in RESOURCE_STATE},
            router._get_resource_index_key(one), len(one._routes.keys() - {hdrs.METH_HEAD}),
        )
        for one in resources
    ]
    if sum(copy.routes for copy in copies) != len(definitions):
        return None
    again = UrlDispatcher()
    _added(again, copies, definitions)
    return copies if _facts(again._resources) == _facts(resources) else None


RESOURCE_STATE = ("_routes", "_any_route", "_allowed_methods")


def _facts(resources: Iterable[Any]) -> list[Any]:
    """Everything about these resources, for a comparison."""
    return [
        (type(one), {**vars(one), "_routes": None, "_any_route": None}, list(one._routes),
         [(type(route), {**vars(route), "_resource": vars(route)["_resource"] is one}, route is one._any_route)
          for route in one._routes.values()])
        for one in resources
    ]
