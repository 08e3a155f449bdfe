"""Every route is there once, and those that are absent come last."""

from collections import Counter
from pathlib import Path

from adapters.blade.server.routes import NOT_IMPLEMENTED_PATHS, rest_routes
from tests.support.dialects.blade.rest_server import blade


async def test_no_route_is_there_twice(tmp_path: Path) -> None:
    async with blade(tmp_path) as client:
        routes = rest_routes(client.gateway.contexts["blade"])
    counted = Counter((route.method, route.path) for route in routes)
    assert [route for route, count in counted.items() if count > 1] == []
    assert [route.path.removeprefix("/api") for route in routes[-len(NOT_IMPLEMENTED_PATHS) :]] == [
        path for _, path, _ in NOT_IMPLEMENTED_PATHS
    ]


async def test_handlers_are_short(tmp_path: Path) -> None:
    from inspect import getsource

    async with blade(tmp_path) as client:
        routes = rest_routes(client.gateway.contexts["blade"])
    long = {route.handler.__qualname__ for route in routes if len(getsource(route.handler).splitlines()) > 15}
    assert long == set()
