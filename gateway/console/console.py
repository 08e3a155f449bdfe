"""The console as a whole: its operations, its routes, and what a browser that asks for `/` gets."""

from aiohttp import web

from gateway.errors import GatewayError
from gateway.http import HttpStatusError
from gateway.json_values import JsonObject

from .command_routes import CommandRoutes
from .log_routes import LogRoutes
from .operations import API, Operation, console_routes
from .server_routes import ServerRoutes
from .services import ConsoleServices
from .session_routes import ConsoleSessionRoutes
from .static_files import PAGE, StaticFiles

HTML = "text/html"


class Console:
    """The page and its API."""

    def __init__(self, services: ConsoleServices) -> None:
        self.operations: list[Operation] = [
            *ServerRoutes(services).operations(),
            *ConsoleSessionRoutes(services).operations(),
            *LogRoutes(services).operations(),
            *CommandRoutes(services).operations(),
        ]
        self._files = StaticFiles()

    def routes(self) -> list[web.RouteDef]:
        return [*self._files.routes(), *console_routes(self.operations)]

    @staticmethod
    def has(path: str) -> bool:
        """Whether a path is one of the console's."""
        return path == PAGE or path.startswith(f"{PAGE}/")

    @staticmethod
    def is_browser(request: web.Request) -> bool:
        """Whether the client wants a page, as browsers do."""
        return HTML in request.headers.get("Accept", "")

    @staticmethod
    def redirect() -> web.Response:
        return web.Response(status=302, headers={"Location": PAGE, "Vary": "Accept"})


def error_body(error: GatewayError) -> tuple[int, JsonObject]:
    """The status and the body of an error of the API."""
    status = error.status if isinstance(error, HttpStatusError) else error.code.status
    return status, {"error": {
        "code": str(error.code), "message": error.message, "param": error.param, "request_id": error.request_id,
    }}


__all__ = ["API", "Console", "error_body"]
