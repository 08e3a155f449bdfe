"""Routes that are copied are what aiohttp would have made of them, and what aiohttp refuses is refused."""

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from aiohttp.web_urldispatcher import UrlDispatcher

from tests.support import route_copies
from tests.support.route_copies import RouteCopies


def by_aiohttp(router: UrlDispatcher, routes: Any) -> Any:
    """`UrlDispatcher.add_routes` without the copies that all tests use."""
    return [route for definition in routes for route in definition.register(router)]


def handler_named(name: str) -> Any:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=name)

    return handler


async def expected(request: web.Request) -> None:
    pass


def definitions(mark: str) -> list[web.RouteDef]:
    return [
        web.get("/plain", handler_named(f"{mark} get")),
        web.post("/plain", handler_named(f"{mark} post"), expect_handler=expected),
        web.get("/one/{id}/more", handler_named(f"{mark} one"), allow_head=False),
        web.route("*", r"/rest{rest:(/.*)?}", handler_named(f"{mark} rest")),
        web.delete("/one/{id}", handler_named(f"{mark} delete")),
    ]


async def answer(router: UrlDispatcher, method: str, path: str) -> str:
    found = await router.resolve(make_mocked_request(method, path))
    if found.http_exception is not None:
        return str(found.http_exception.status)
    response = await found.handler(make_mocked_request(method, path))
    assert isinstance(response, web.Response)
    return f"{response.text} {dict(found)}"


@pytest.fixture
def asked() -> list[int]:
    """How many routes aiohttp has registered, a number for each time."""
    return []


@pytest.fixture
def copies(asked: list[int]) -> RouteCopies:
    def counted(router: UrlDispatcher, routes: Any) -> Any:
        asked.append(len(routes))
        return by_aiohttp(router, routes)

    return RouteCopies(counted)


async def test_a_copy_has_the_handlers_of_its_own_gateway(copies: RouteCopies, asked: list[int]) -> None:
    copies.add(UrlDispatcher(), definitions("first"))
    copied, made = UrlDispatcher(), UrlDispatcher()
    routes = definitions("second")
    added, original = copies.add(copied, routes), by_aiohttp(made, routes)
    assert asked == [5]
    assert route_copies._facts(copied.resources()) == route_copies._facts(made.resources())
    assert [(one.method, one.handler) for one in added] == [(one.method, one.handler) for one in original]
    for method, path in (
        ("GET", "/plain"), ("HEAD", "/plain"), ("POST", "/plain"), ("PUT", "/plain"), ("GET", "/one/7/more"),
        ("HEAD", "/one/7/more"), ("PATCH", "/rest/a/b"), ("DELETE", "/one/7"), ("GET", "/none"),
    ):
        assert await answer(copied, method, path) == await answer(made, method, path)
    assert (await answer(copied, "DELETE", "/one/7")).startswith("second delete")


def test_what_is_refused_is_refused_every_time(copies: RouteCopies) -> None:
    twice = [web.get("/a", handler_named("x")), web.get("/a", handler_named("y"))]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="will never be executed"):
            copies.add(UrlDispatcher(), twice)


def test_other_paths_names_and_neighbours_are_left_to_aiohttp(copies: RouteCopies, asked: list[int]) -> None:
    router = UrlDispatcher()
    copies.add(router, [web.get("/a", handler_named("x"))])
    copies.add(router, [web.post("/a", handler_named("x"))])
    copies.add(router, [web.get("/b", handler_named("x"))])
    for _ in range(2):
        copies.add(UrlDispatcher(), [web.get("/c", handler_named("x"), name="c")])
    assert asked == [1] * 5
    assert [resource.canonical for resource in router.resources()] == ["/a", "/b"]


async def test_where_a_copy_would_differ_there_is_none(
    copies: RouteCopies, asked: list[int], monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as with another version of aiohttp, whose routes have more to them."""
    init = route_copies.ResourceRoute.__init__

    def with_more(route: Any, *given: Any, **named: Any) -> None:
        init(route, *given, **named)
        route._more = 1

    monkeypatch.setattr(route_copies.ResourceRoute, "__init__", with_more)
    for _ in range(2):
        copies.add(UrlDispatcher(), definitions("x"))
    assert asked == [5, 5]


def test_this_aiohttp_has_the_private_names_that_copies_need() -> None:
    assert not route_copies.missing_names(), "tests run without copies of routes: mend tests/support/route_copies.py"


def test_a_private_name_that_aiohttp_has_no_more_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_copies, "RESOURCE_STATE", ("_routes", "_gone"))
    assert route_copies.missing_names() == ["PlainResource._gone"]
