"""A handler has the policy that its decorators put there, and a wrapper has that of the handler."""

from functools import wraps

from aiohttp import web

from gateway.http.security.auth import (
    DEFAULT_POLICY,
    RoutePolicy,
    accepts_any_content_type,
    admins_only,
    mark,
    policy_of,
    public,
)


async def handler(request: web.Request) -> web.Response:
    return web.Response()


class Routes:
    @public
    async def front(self, request: web.Request) -> web.Response:
        return web.Response()


def test_a_handler_without_marks_demands_a_credential_and_json() -> None:
    assert policy_of(handler) == DEFAULT_POLICY == RoutePolicy()
    assert not DEFAULT_POLICY.is_public and not DEFAULT_POLICY.any_content_type


def test_marks_add_up() -> None:
    @admins_only
    @accepts_any_content_type
    async def marked(request: web.Request) -> web.Response:
        return web.Response()

    assert policy_of(marked) == RoutePolicy(for_admins=True, any_content_type=True)


def test_a_method_of_an_object_has_the_marks_of_its_function() -> None:
    assert policy_of(Routes().front).is_public


def test_a_wrapper_has_the_policy_of_its_handler_and_may_change_its_own() -> None:
    front = Routes().front

    @wraps(front)
    async def wrapper(request: web.Request) -> web.Response:
        return await front(request)

    mark(wrapper, is_idempotent=True)
    assert policy_of(wrapper) == RoutePolicy(is_public=True, is_idempotent=True)
    assert policy_of(front) == RoutePolicy(is_public=True)
