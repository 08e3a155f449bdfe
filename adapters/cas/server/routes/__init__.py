"""All routes of CAS, one file per group: sessions, events, agents, skills, files, vaults, memories."""

from collections.abc import Iterable

from aiohttp import web

from adapters.cas.server.handler_context import HandlerContext
from adapters.cas.wire import CasSettings
from gateway.http import Context, Idempotency, limit_body_size

from .agents import routes_of_resources
from .events import event_routes
from .sessions import SessionRoutes, _session_routes

__all__ = [
    "routes_of_resources",
]


def routes(context: Context[CasSettings]) -> Iterable[web.RouteDef]:
    """Everything under the mount, and again under its `/v1`; a keyed request is carried out once under either."""
    once, desk = Idempotency(context.answers), HandlerContext(context)
    own = [
        route for at in (context.mount, f"{context.mount}/v1")
        for route in (*_session_routes(SessionRoutes(desk), at), *event_routes(desk, at))
    ]
    return limit_body_size(
        [*once.routes(own), *routes_of_resources(context, once)], lambda: context.settings.body_bytes
    )
