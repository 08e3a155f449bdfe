"""Serves the API documents; each is made when it is first asked for, and again after the tables were reloaded."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from gateway.errors import NotFound
from gateway.http import Answers, dumps, mount_prefix, public
from gateway.json_values import JsonObject
from gateway.yaml_positions import suggest

from .asyncapi import asyncapi_document
from .openapi import openapi_document
from .route_groups import RouteGroup

OPENAPI, ASYNCAPI = "/openapi.json", "/asyncapi.json"
MakeDocument = Callable[[Sequence[RouteGroup], str, str], dict[str, Any]]
"""(what is described, the version of the server, the path below which it is mounted) → the document."""
MAKERS: dict[str, MakeDocument] = {OPENAPI: openapi_document, ASYNCAPI: asyncapi_document}
DIALECT_QUERY = {"dialect": str}


class ApiDocuments:
    """The documents of one server, whole or of one dialect."""

    def __init__(self, groups: Callable[[], Sequence[RouteGroup]], version: str) -> None:
        self._groups, self._version = groups, version
        self._made: dict[tuple[str, str], asyncio.Task[bytes]] = {}

    def routes(self) -> list[web.RouteDef]:
        return [web.get(OPENAPI, self.openapi), web.get(ASYNCAPI, self.asyncapi)]

    def forget(self) -> None:
        """Make the documents anew when they are asked for: a table has changed."""
        self._made.clear()

    @public
    @Answers(JsonObject, query=DIALECT_QUERY)
    async def openapi(self, request: web.Request) -> web.Response:
        """The OpenAPI document of this server, or of one dialect."""
        return await self._answer(request, OPENAPI)

    @public
    @Answers(JsonObject, query=DIALECT_QUERY)
    async def asyncapi(self, request: web.Request) -> web.Response:
        """The AsyncAPI document of this server, or of one dialect."""
        return await self._answer(request, ASYNCAPI)

    async def _answer(self, request: web.Request, kind: str) -> web.Response:
        dialect = request.query.get("dialect", "")
        groups = choose_groups(self._groups(), dialect)
        making = self._made.get((kind, dialect))
        if making is None:
            prefix = mount_prefix(request.app)
            making = self._made[kind, dialect] = asyncio.ensure_future(
                asyncio.to_thread(lambda: dumps(MAKERS[kind](groups, self._version, prefix))))
        return web.Response(body=await asyncio.shield(making), content_type="application/json")

    def make(self, kind: str, dialect: str = "") -> dict[str, Any]:
        """The document of this path, whole or of one dialect; raises `NotFound`."""
        return MAKERS[kind](choose_groups(self._groups(), dialect), self._version, "")


def choose_groups(groups: Sequence[RouteGroup], dialect: str) -> Sequence[RouteGroup]:
    """All groups, or that of a dialect; raises `NotFound`."""
    if not dialect:
        return groups
    found = [group for group in groups if group.name == dialect and group.table is not None]
    if not found:
        known = [group.name for group in groups if group.table is not None]
        hint = suggest(dialect, known) or f"there are: {', '.join(known)}"
        raise NotFound(f"no dialect '{dialect[:64]}' is served; {hint}")
    return found
