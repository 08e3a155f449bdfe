"""All routes of CAS, one file per group: sessions, mounts, events, agents, skills, files, vaults, memories."""

from collections.abc import Iterable

from aiohttp import web

from adapters.cas.server.handler_context import HandlerContext
from adapters.cas.wire import CasSettings
from gateway.http import Context, Idempotency, limit_body_size
from gateway.ports import SharedKind, ShownResource

from .agents import routes_of_resources
from .events import event_routes
from .mounts import mount_routes
from .sessions import session_routes

RESOURCES = {
    SharedKind.AGENT: ShownResource(("/agents",), "with versions; `agent` of a session"),
    SharedKind.TOOL: ShownResource(("/agents",), "`tools` of an agent or a session"),
    SharedKind.MCP_SERVER: ShownResource(("/agents",), "`mcp_servers` of an agent or a session"),
    SharedKind.SKILL: ShownResource(("/skills",), "with versions; `skills` of an agent or a session"),
    SharedKind.MEMORY: ShownResource(
        ("/memory_stores",), "the store `memstore_notes`, read only; `memory_store_ids` of a session"),
    SharedKind.SETTINGS: ShownResource(words="fill in new sessions"),
    SharedKind.FILE: ShownResource(("/files",)),
}
"""Where the routes show the resources that dialects share; `dragoman check --resources` prints it."""


def routes(context: Context[CasSettings]) -> Iterable[web.RouteDef]:
    """Everything under the mount, and again under its `/v1`; a keyed request is carried out once under either."""
    handlers = HandlerContext(context)
    own = [
        *session_routes(handlers), *mount_routes(handlers), *event_routes(handlers), *routes_of_resources(context),
    ]
    once = limit_body_size(Idempotency(context.answers).routes(own), lambda: context.settings.body_bytes)
    return [
        web.RouteDef(route.method, at + route.path, route.handler, route.kwargs)
        for at in (context.mount, f"{context.mount}/v1") for route in once
    ]
