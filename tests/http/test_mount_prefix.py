"""Where the gateway is mounted is read from its routes."""

from aiohttp import web

from gateway.http import Readiness, health_routes, mount_prefix


def gateway_application() -> web.Application:
    app = web.Application()
    app.add_routes(health_routes(Readiness()))
    return app


def test_a_whole_application_has_no_prefix() -> None:
    assert mount_prefix(gateway_application()) == ""


def test_a_part_of_an_application_has_the_prefixes_of_all_around_it() -> None:
    inner, middle, outer = gateway_application(), web.Application(), web.Application()
    middle.add_subapp("/agents", inner)
    outer.add_subapp("/company", middle)
    assert mount_prefix(inner) == "/company/agents"


def test_an_application_that_is_no_gateway_has_no_prefix() -> None:
    assert mount_prefix(web.Application()) == ""
