"""All routes of AAP, one file per group: sessions and turns."""

from collections.abc import Iterable

from aiohttp import web

from adapters.aap.wire import AapSettings
from gateway.http import Context
from gateway.ports import SharedKind, ShownResource

from .sessions import SessionRoutes

RESOURCES = {
    SharedKind.AGENT: ShownResource(("/meta",), "for a client with a key; `agent.name` of a new session"),
    SharedKind.TOOL: ShownResource(("/meta",), "`agent.tools` of a new session"),
    SharedKind.MCP_SERVER: ShownResource(words="new sessions have those of their agent"),
    SharedKind.SKILL: ShownResource(words="new sessions have those of their agent"),
    SharedKind.SETTINGS: ShownResource(words="fill in new sessions"),
}
"""Where the routes show the resources that dialects share; `dragoman check --resources` prints it."""


def routes(context: Context[AapSettings]) -> Iterable[web.RouteDef]:
    aap, at = SessionRoutes(context), context.mount
    return [
        web.get(f"{at}/meta", aap.meta),
        web.post(f"{at}/sessions", aap.create),
        web.get(f"{at}/sessions", aap.listed),
        web.get(f"{at}/sessions/{{id}}", aap.get),
        web.delete(f"{at}/sessions/{{id}}", aap.delete),
        web.get(f"{at}/sessions/{{id}}/history", aap.history),
        web.post(f"{at}/sessions/{{id}}/turns", aap.turn),
        web.get(f"{at}/sessions/{{id}}/turns/current", aap.current),
        web.delete(f"{at}/sessions/{{id}}/turns/current", aap.interrupt),
    ]
