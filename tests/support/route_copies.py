"""Registers the routes of the gateways of tests as aiohttp does, but works out only once what follows from their paths.

Every gateway registers some hundred routes, with the paths of the gateway before it. Routes with new paths are
registered by aiohttp, with all its checks; others are copies of those, with the handlers of their own gateway.

aiohttp has no public way to do so. `missing_names` says which of its private names a version has no more; tests then
run without copies, slower and with the same results, and `tests/harness/test_route_copies.py` fails with the names.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aiohttp import hdrs, web, web_urldispatcher
from aiohttp.web_urldispatcher import AbstractRoute, Resource, ResourceRoute, UrlDispatcher

USUAL = {"expect_handler", "name", "allow_head"}
"""What a definition may say beside its method and its path, if its route is to be copied."""
Paths = tuple[tuple[str, str, bool], ...]
"""Method and path of each route, and whether a HEAD request is a GET request."""
AddRoutes = Callable[[UrlDispatcher, Iterable[Any]], list[AbstractRoute]]
EXPECT_HANDLER = getattr(web_urldispatcher, "_default_expect_handler", None)


def missing_names() -> list[str]:
    """Private names of aiohttp that are used here and that the installed version lacks: then nothing can be copied."""
    router = UrlDispatcher()
    route = router.add_route("GET", "/", _nothing)
    needed: list[tuple[Any, tuple[str, ...]]] = [
        (web_urldispatcher, ("_default_expect_handler",)),
        (router, ("_resources", "_resource_index", "_get_resource_index_key")),
        (route.resource, RESOURCE_STATE),
        (route, ("_method", "_handler", "_resource", "_expect_handler")),
    ]
    return [f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"
            for owner, names in needed for name in names if not hasattr(owner, name)]


async def _nothing(request: web.Request) -> web.Response:
    return web.Response()


@dataclass(frozen=True)
class ResourceCopy:
    """A resource that aiohttp has made, without its routes."""

    kind: type[Resource]
    fields: dict[str, Any]
    index_key: str
    routes: tuple[tuple[str, bool], ...]
    """The methods of those of the routes that it has, and whether a HEAD request is such a request."""

    def make(self) -> Resource:
        made = self.kind.__new__(self.kind)
        made.__dict__ = {**self.fields, "_routes": {}, "_any_route": None, "_allowed_methods": set()}
        return made


def _route(resource: Resource, method: str, definition: web.RouteDef) -> ResourceRoute:
    made = ResourceRoute.__new__(ResourceRoute)
    made.__dict__ = {
        "_method": method, "_handler": definition.handler, "_resource": resource,
        "_expect_handler": definition.kwargs.get("expect_handler") or EXPECT_HANDLER,
    }
    state = resource.__dict__
    if method == hdrs.METH_ANY:
        state["_any_route"] = made
    state["_routes"][method] = made
    state["_allowed_methods"].add(method)
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
    for one in definitions:
        if type(one) is not web.RouteDef or one.kwargs.get("name") or not one.kwargs.keys() <= USUAL:
            return ()
    return tuple([(one.method, one.path, _is_for_head(one)) for one in definitions])


def _is_for_head(definition: web.RouteDef) -> bool:
    return definition.method == hdrs.METH_GET and definition.kwargs.get("allow_head", True)


def _added(router: UrlDispatcher, copies: list[ResourceCopy], definitions: list[web.RouteDef]) -> list[AbstractRoute]:
    added: list[AbstractRoute] = []
    rest = iter(definitions)
    for copy in copies:
        resource = copy.make()
        router._resources.append(resource)
        router._resource_index.setdefault(copy.index_key, []).append(resource)
        for method, is_for_head in copy.routes:
            definition = next(rest)
            if is_for_head:
                _route(resource, hdrs.METH_HEAD, definition)
            added.append(_route(resource, method, definition))
    return added


def _copies(
    router: UrlDispatcher, resources: list[Resource], definitions: list[web.RouteDef],
) -> list[ResourceCopy] | None:
    """What is needed to add these resources again; None if a copy would not be the same."""
    counts = [len(one._routes.keys() - {hdrs.METH_HEAD}) for one in resources]
    if sum(counts) != len(definitions):
        return None
    rest = iter(definitions)
    copies = [
        ResourceCopy(
            type(one), {name: value for name, value in vars(one).items() if name not in RESOURCE_STATE},
            router._get_resource_index_key(one),
            tuple((definition.method, _is_for_head(definition)) for definition in islice(rest, count)),
        )
        for one, count in zip(resources, counts, strict=True)
    ]
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
