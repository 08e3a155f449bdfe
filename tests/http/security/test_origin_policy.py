"""Hosts and origins are held to their lists; every answer to a listed page says that the page may read it."""

import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from gateway.http import AllowList, TrustedProxies, add_cors_headers
from gateway.http.security.origin_policy import OriginPolicy, is_same_origin, normalize_host

APP = "https://app.example"
PREFLIGHT = {"Origin": APP, "Access-Control-Request-Method": "PUT"}


def serving(*origins: str) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("broken"):
            raise web.HTTPConflict
        return web.Response(text="here")

    policy = OriginPolicy(AllowList(origins=origins), TrustedProxies())
    app = web.Application(middlewares=[policy.middleware])
    app.on_response_prepare.append(add_cors_headers)
    app.add_routes([web.get("/{path:.+}", answer)])
    return app


async def test_answers_and_errors_are_marked(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving(APP))
    for path in ("/x", "/broken"):
        answer = await client.get(path, headers={"Origin": APP})
        assert answer.headers["Access-Control-Allow-Origin"] == APP
    assert "Access-Control-Allow-Origin" not in (await client.get("/x")).headers


async def test_a_preflight_asks_for_headers_only_if_it_names_some(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving(APP))
    answer = await client.options("/x", headers=PREFLIGHT)
    assert (answer.status, "Access-Control-Allow-Headers" in answer.headers) == (204, False)
    answer = await client.options("/x", headers={**PREFLIGHT, "Access-Control-Request-Headers": "x-own"})
    assert answer.headers["Access-Control-Allow-Headers"] == "x-own"
    assert "PUT" in answer.headers["Access-Control-Allow-Methods"]


async def test_options_that_are_no_preflight_are_the_applications(aiohttp_client: AiohttpClient) -> None:
    client = await aiohttp_client(serving(APP))
    assert (await client.options("/x", headers={"Origin": APP})).status == 405
    assert (await client.options("/x")).status == 405


@pytest.mark.parametrize(("written", "plain"), [
    ("LocalHost.", "localhost"), ("[::1]", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("fe80::1%eth0", "fe80::1"),
    ("::ffff:127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("127.1", "127.1"),
    ("Gateway.Example", "gateway.example"),
])
def test_a_host_has_one_form(written: str, plain: str) -> None:
    assert normalize_host(written) == plain


@pytest.mark.parametrize(("host", "arrived_at", "known"), [
    ("10.0.0.7:18900", "10.0.0.7", True), ("10.0.0.8", "10.0.0.7", False), ("[2001:db8::1]", "2001:db8:0::1", True),
    ("10.0.0.7", "::ffff:10.0.0.7", True), ("2130706433", "10.0.0.7", False), ("a b", None, False),
    ("machine.lan:1", None, True), ("127.1", None, False),
])
def test_the_address_at_which_the_connection_arrived_is_a_name(host: str, arrived_at: str, known: bool) -> None:
    assert AllowList("machine.lan").allows_host(host, arrived_at) is known


def test_every_name_where_the_settings_say_so() -> None:
    assert AllowList(hosts=["*"]).allows_host("anything.example", None)
    assert not AllowList(hosts=["*"]).allows_host("not a name", None)


@pytest.mark.parametrize(("origin", "scheme", "host", "own"), [
    ("http://a.example", "http", "a.example", True), ("http://a.example", "http", "a.example:80", True),
    ("http://a.example:8080", "http", "a.example", False), ("http://A.example", "http", "a.EXAMPLE", True),
    ("https://a.example", "http", "a.example", True), ("http://a.example", "https", "a.example", False),
    ("https://a.example", "https", "a.example:443", True), ("http://[::1]:9", "http", "[0::1]:9", True),
    ("http://b.example", "http", "a.example", False), ("null", "http", "a.example", False),
    ("http://a.example/path", "http", "a.example", False), ("http://", "http", "", False),
])
def test_which_origin_is_the_servers_own(origin: str, scheme: str, host: str, own: bool) -> None:
    assert is_same_origin(origin, scheme, host) is own


def test_pages_of_this_machine_can_be_listed_beside_others() -> None:
    both = AllowList("0.0.0.0", origins=["loopback", "https://App.example/"])
    assert all(map(both.allows_origin, ("http://localhost:1", "tauri://localhost", "https://app.example")))
    assert not both.allows_origin("https://app.example:8443")
    assert not both.allows_origin("loopback")
