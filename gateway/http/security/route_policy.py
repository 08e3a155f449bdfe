"""Marks of routes: decorators put a RoutePolicy on a handler, and the middlewares read it."""

from dataclasses import dataclass, replace
from typing import TypeVar

H = TypeVar("H")
_ATTRIBUTE = "route_policy"


@dataclass(frozen=True)
class RoutePolicy:
    """What a route demands of its requests; a handler without a policy demands a credential and JSON."""

    is_public: bool = False
    """No credential is needed."""
    for_admins: bool = False
    """Only admins may call the route: it shows or changes data of all users."""
    any_content_type: bool = False
    """Browsers may send a body of any content type."""
    is_idempotent: bool = False
    """The handler executes requests with an Idempotency-Key once."""


DEFAULT_POLICY = RoutePolicy()


def policy_of(handler: object) -> RoutePolicy:
    policy: RoutePolicy = getattr(handler, _ATTRIBUTE, DEFAULT_POLICY)
    return policy


def mark(handler: H, **changes: bool) -> H:
    """Change the policy of a handler; `functools.wraps` carries the policy over to a wrapper."""
    setattr(handler, _ATTRIBUTE, replace(policy_of(handler), **changes))
    return handler


def public(handler: H) -> H:
    """Mark a handler that needs no credential."""
    return mark(handler, is_public=True)


def admins_only(handler: H) -> H:
    """Mark a handler that shows or changes data of all users: only admins may call it."""
    return mark(handler, for_admins=True)


def accepts_any_content_type(handler: H) -> H:
    """Mark a handler that accepts a body of any content type."""
    return mark(handler, any_content_type=True)
