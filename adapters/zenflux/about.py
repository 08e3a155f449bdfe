"""Files, models and health over HTTP."""

from importlib.metadata import version

from aiohttp import web

from gateway.errors import GatewayError
from gateway.web import OWNER, Context, address, attachment, for_admins, public, receive, reply

from . import views
from .chat import LINK


class About:
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context

    # -- files ----------------------------------------------------------------------------------------------------

    async def upload(self, request: web.Request) -> web.Response:
        form, stored = await receive(request, self.house.files)
        url = address(request, f"{self.house.mount}/files/{stored.file_id}")
        body = {
            "name": form.name, "media_type": form.media_type, "size": stored.size, "sha256": stored.sha256,
            "metadata": {}, LINK: url,
        }
        try:
            made = await self.house.resources.create("file", request[OWNER], body, resource_id=stored.file_id)
        except GatewayError:
            await self.house.files.remove(stored.file_id)
            raise
        return self._reply(views.file(self.house.table, made, url))

    async def download(self, request: web.Request) -> web.StreamResponse:
        found = await self.house.resources.get("file", request[OWNER], request.match_info["id"])
        path = self.house.files.path(found.resource_id)
        return attachment(path, found.body["name"], found.body["media_type"])

    # -- models ---------------------------------------------------------------------------------------------------

    async def models(self, request: web.Request) -> web.Response:
        kind, provider = request.query.get("type", ""), request.query.get("provider", "")
        return self._reply(views.models(self.house.table, self.house.agents, kind, provider))

    async def providers(self, request: web.Request) -> web.Response:
        """The later front end wants the list itself; models are the agents' own affair here."""
        return reply([])

    async def embedding_status(self, request: web.Request) -> web.Response:
        return self._reply(self.house.table.object("embedding_status"))

    # -- health ---------------------------------------------------------------------------------------------------

    @public
    async def health(self, request: web.Request) -> web.Response:
        return self._health("ok")

    @public
    async def live(self, request: web.Request) -> web.Response:
        return self._health("alive")

    @for_admins
    async def metrics(self, request: web.Request) -> web.Response:
        figures = self.house.metrics.figures() if self.house.metrics else {}
        return self._reply(self.house.table.object("metrics", metrics=figures, at=self.house.clock()))

    def _health(self, status: str) -> web.Response:
        told = self.house.table.object("health", status=status, version=version("dragoman"), at=self.house.clock())
        return self._reply(told)

    def _reply(self, data: object) -> web.Response:
        return reply(views.wrapped(self.house.table, data))
