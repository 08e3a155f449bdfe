"""Documents, files, models and health over HTTP."""

import asyncio
from importlib.metadata import version
from itertools import groupby

from aiohttp import web

from adapters.zenflux.bodies import (
    CategoryBody,
    DocumentBody,
    DocumentEntryBody,
    EmbeddingStatus,
    HealthBody,
    MetricsBody,
    spell,
)
from adapters.zenflux.server import views
from adapters.zenflux.server.chat_service import UPLOAD_LINK
from adapters.zenflux.wire import ZenfluxSettings
from gateway.http import (
    FORM,
    OWNER,
    Answers,
    Context,
    absolute_url,
    admins_only,
    attachment,
    json_response,
    public,
    receive_form,
)
from gateway.json_values import JsonValue
from gateway.resources import DocumentFolder, create_file_resource

ROOT_CATEGORY = "root"


class DocumentRoutes:
    """The routes of documents, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context

    @Answers(views.wrapped({"categories": ["category"], "total_files": int}))
    async def structure(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self._folder().entries)
        categories: list[JsonValue] = [
            spell(self.context.table, CategoryBody(id=category or ROOT_CATEGORY, files=[
                DocumentEntryBody(name=one.name, path=one.path, title=one.title) for one in entries
            ]))
            for category, entries in groupby(found, key=lambda one: one.category)
        ]
        return views.reply(self.context, {"categories": categories, "total_files": len(found)})

    @Answers(views.wrapped("document"))
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


class ServiceRoutes:
    """The routes of files, models and health, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context

    # -- files ----------------------------------------------------------------------------------------------------

    @Answers(views.wrapped("file"), reads_type=FORM)
    async def upload(self, request: web.Request) -> web.Response:
        form, stored = await receive_form(request, self.context.files)
        url = absolute_url(request, f"{self.context.mount}/files/{stored.file_id}")
        body = {"name": form.name, "media_type": form.media_type, UPLOAD_LINK: url}
        made = await create_file_resource(self.context.files, self.context.resources, request[OWNER], stored, body)
        return views.reply(self.context, views.file_body(self.context.table, made, url))

    @Answers(media_type="*/*")
    async def download(self, request: web.Request) -> web.StreamResponse:
        found = await self.context.resources.get("file", request[OWNER], request.match_info["id"])
        content = await self.context.files.open(found.resource_id)
        return await attachment(request, content, found.body["name"], found.body["media_type"])

    # -- models ---------------------------------------------------------------------------------------------------

    @Answers((views.wrapped(["model"]), ["model"]), query={"type": str, "provider": str})
    async def models(self, request: web.Request) -> web.Response:
        kind, provider = request.query.get("type", ""), request.query.get("provider", "")
        shown = views.model_bodies(self.context.table, self.context.agents, kind, provider)
        return json_response(shown) if self._is_bare(request) else views.reply(self.context, shown)

    def _is_bare(self, request: web.Request) -> bool:
        """Whether the client reads the list without the wrapper: the published front end does, and asks with axios.

        Axios accepts `application/json, text/plain, */*`; other clients do not ask for plain text.
        """
        form = self.context.settings.models
        return form == "bare" or (form == "auto" and "text/plain" in request.headers.get("Accept", ""))

    @Answers([object])
    async def providers(self, request: web.Request) -> web.Response:
        """The later front end expects a bare list; agents have their own models here."""
        return json_response([])

    @Answers(views.wrapped("embedding_status"))
    async def embedding_status(self, request: web.Request) -> web.Response:
        return views.reply(self.context, spell(self.context.table, EmbeddingStatus()))

    # -- health ---------------------------------------------------------------------------------------------------

    @public
    @Answers(views.wrapped("health"))
    async def health(self, request: web.Request) -> web.Response:
        return self._health("ok")

    @public
    @Answers(views.wrapped("health"))
    async def live(self, request: web.Request) -> web.Response:
        return self._health("alive")

    @admins_only
    @Answers(views.wrapped("metrics"))
    async def metrics(self, request: web.Request) -> web.Response:
        figures = self.context.metrics.figures() if self.context.metrics else {}
        body = MetricsBody(metrics=figures, at=self.context.clock())
        return views.reply(self.context, spell(self.context.table, body))

    def _health(self, status: str) -> web.Response:
        body = HealthBody(status=status, version=version("dragoman"), at=self.context.clock())
        return views.reply(self.context, spell(self.context.table, body))
