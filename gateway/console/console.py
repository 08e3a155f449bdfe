"""The console as a whole: its operations, its routes, and what a browser that asks for `/` gets."""

from typing import Any

from aiohttp import web
from msgspec import Struct

from gateway.api_documents import RouteGroup, openapi_document
from gateway.errors import GatewayError
from gateway.http import HttpStatusError, dumps, mount_prefix
from gateway.json_values import JsonObject

from .admin_routes import AdminRoutes
from .archive_routes import ArchiveOperations, ShareOperations
from .card_routes import CardRoutes
from .command_routes import CommandRoutes
from .examination import Examiner
from .examination_routes import ExaminationRoutes
from .import_routes import ImportRoutes
from .log_routes import LogRoutes
from .operations import API, ConsoleServices, Operation, console_routes
from .reconnect_routes import ReconnectRoutes
from .server_routes import ServerRoutes
from .session_routes import ConsoleSessionRoutes
from .session_watch import SessionWatchRoutes
from .static_files import PAGE, StaticFiles
from .table_routes import TableRoutes
from .usage_routes import UsageRoutes

HTML = "text/html"


class Console:
    """The page and its API."""

    def __init__(self, services: ConsoleServices) -> None:
        cards = CardRoutes(services)
        self.examiner = Examiner(services.data, services.clock)
        self.operations: list[Operation] = [
            *ServerRoutes(services).operations(),
            *SessionWatchRoutes(services).operations(),
            *ConsoleSessionRoutes(services).operations(),
            *LogRoutes(services).operations(),
            *CommandRoutes(services).operations(),
            *ArchiveOperations(services).operations(),
            *ShareOperations(services).operations(),
            *ImportRoutes(services).operations(),
            *cards.operations(),
            *ReconnectRoutes(services).operations(),
            *TableRoutes(services).operations(),
            *AdminRoutes(services).operations(),
            *UsageRoutes(services).operations(),
            *ExaminationRoutes(services, self.examiner).operations(),
        ]
        self.operations.append(Operation(
            method="GET", path="/openapi.json", handler=self._describe, is_public=True,
            answer=dict[str, Any], summary="Describe this API, as an OpenAPI document."))
        self._files, self._cards = StaticFiles(), cards
        self._version, self._needs_key = services.version, bool(services.auth)
        self._description: bytes | None = None

    def routes(self) -> list[web.RouteDef]:
        return [*self._files.routes(), *self._cards.routes(), *console_routes(self.operations)]

    async def close(self) -> None:
        """End the examination that runs."""
        await self.examiner.close()

    async def _describe(self, request: web.Request) -> web.Response:
        if self._description is None:
            group = RouteGroup(name="console", routes=console_routes(self.operations), error=ApiError,
                               needs_key=self._needs_key)
            prefix = mount_prefix(request.app)
            self._description = dumps(openapi_document([group], self._version, prefix, "Dragoman console"))
        return web.Response(body=self._description, content_type="application/json")

    @staticmethod
    def has(path: str) -> bool:
        """Whether a path is one of the console's."""
        return path == PAGE or path.startswith(f"{PAGE}/")

    @staticmethod
    def is_browser(request: web.Request) -> bool:
        """Whether the client wants a page, as browsers do."""
        return HTML in request.headers.get("Accept", "")

    @staticmethod
    def redirect(prefix: str) -> web.Response:
        return web.Response(status=302, headers={"Location": f"{prefix}{PAGE}/", "Vary": "Accept"})


class ApiFault(Struct, kw_only=True):
    """The error in words, and the name of the wrong parameter."""

    code: str
    message: str
    param: str | None
    request_id: str | None


class ApiError(Struct, kw_only=True):
    """The body of an error of the API."""

    error: ApiFault


def error_body(error: GatewayError) -> tuple[int, JsonObject]:
    """The status and the body of an error of the API."""
    status = error.status if isinstance(error, HttpStatusError) else error.code.status
    return status, {"error": {
        "code": str(error.code), "message": error.message, "param": error.param, "request_id": error.request_id,
    }}


__all__ = ["API", "ApiError", "Console", "error_body"]
