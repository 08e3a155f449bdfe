"""Documents over HTTP: the tree of a folder of Markdown, and each document."""

import asyncio
from itertools import groupby
from typing import Any

from aiohttp import web

from adapters.zenflux.bodies import CategoryBody, DocumentBody, DocumentEntryBody, spell
from adapters.zenflux.server import views
from adapters.zenflux.wire import ZenfluxSettings
from gateway.http import Context
from gateway.resources import DocumentFolder

ROOT_CATEGORY = "root"


class DocumentRoutes:
    """One method per route."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context

    async def structure(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._folder().entries)
        categories: list[Any] = [
            spell(self.context.table, CategoryBody(id=category or ROOT_CATEGORY, files=[
                DocumentEntryBody(name=one.name, path=one.path, title=one.title) for one in entries
            ]))
            for category, entries in groupby(found, key=lambda one: one.category)
        ]
        return views.reply(self.context, {"categories": categories, "total_files": len(found)})

    async def content(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._folder().read, request.match_info["path"])
        return views.reply(self.context, spell(self.context.table, DocumentBody(
            path=found.entry.path, title=found.entry.title, content=found.content,
            category=found.entry.category or ROOT_CATEGORY)))

    def _folder(self) -> DocumentFolder:
        return DocumentFolder(self.context.offers.docs)


def routes_of_docs(context: Context[ZenfluxSettings]) -> list[web.RouteDef]:
    routes, at = DocumentRoutes(context), f"{context.mount}/docs"
    return [web.get(f"{at}/structure", routes.structure), web.get(f"{at}/content/{{path:.+}}", routes.content)]
