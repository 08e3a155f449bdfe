"""Servers that lack optional parts of their protocol, and the parts that can be looked for."""

import re
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from conformance.faults.local_server import Servable
from conformance.kit.suite import load_suite

COLLECTION = re.compile(r"(/api(/v1)?)?/[^/]+")
"""What a route is below: the collection that all of its kind belong to."""


@dataclass
class Lacking:
    """A correct server without some of its routes."""

    server: Servable
    routes: tuple[str, ...]
    status: int = 404

    @property
    def mount(self) -> str:
        return self.server.mount

    def app(self) -> web.Application:
        app = self.server.app()
        paths = tuple(self.mount + _collection(route) for route in self.routes)

        @web.middleware
        async def lacking(request: web.Request, handler: Any) -> web.StreamResponse:
            if request.path.startswith(paths):
                return web.json_response({"detail": "Not Found"}, status=self.status)
            answer: web.StreamResponse = await handler(request)
            return answer

        app.middlewares.append(lacking)
        return app


def _collection(route: str) -> str:
    found = COLLECTION.match(route.partition(" ")[2])
    assert found is not None
    return found[0]


def probed(dialect: str) -> dict[str, tuple[str, ...]]:
    """The features of a dialect that can be looked for, and their routes."""
    return {name: item.routes for name, item in load_suite(dialect).catalogue.features.items() if item.routes}
