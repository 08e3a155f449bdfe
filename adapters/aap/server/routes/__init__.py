"""All routes of AAP, one file per group: sessions and turns."""

from collections.abc import Iterable

from aiohttp import web

from adapters.aap.wire import AapSettings
from gateway.http import Context

from .sessions import SessionRoutes


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
