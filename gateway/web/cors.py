"""Pages of other sites: whether a browser lets them ask here is each dialect's setting `cors`."""

from collections.abc import Callable

from aiohttp import web

from .guard import Handler

METHODS = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
EVERYBODY = {"Access-Control-Allow-Origin": "*"}


class Cors:
    """Answers the question browsers ask beforehand, and marks answers; `is_open` tells whether a path is for all."""

    def __init__(self, is_open: Callable[[str], bool]) -> None:
        self._is_open = is_open

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method == "OPTIONS" and self._is_open(request.path):
            wanted = request.headers.get("Access-Control-Request-Headers", "*")
            headers = {"Access-Control-Allow-Methods": METHODS, "Access-Control-Allow-Headers": wanted}
            return web.Response(status=204, headers={**headers, "Access-Control-Max-Age": "600"})
        return await handler(request)

    async def mark(self, request: web.Request, response: web.StreamResponse) -> None:
        """To be called before a response is sent."""
        if self._is_open(request.path):
            response.headers.update(EVERYBODY)
