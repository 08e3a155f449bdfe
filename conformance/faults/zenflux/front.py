"""The front of the ZenFlux reference server over REST: wrapper, refusals and bodies that are read."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.zenflux.state import Body, Refusal

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Front:
    """Reads bodies, wraps answers and refuses requests."""

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return self.refusal(refusal.status, refusal.words)
        except web.HTTPException as error:
            return self.refusal(error.status, error.reason)

    def refusal(self, status: int, words: str) -> web.Response:
        return self.wrap(status, words, None)

    def reply(self, data: Any) -> web.Response:
        return self.wrap(200, "success", data)

    def wrap(self, code: int, message: str, data: Any) -> web.Response:
        """An answer in its wrapper; members of an object stand beside the wrapper's too."""
        wrapper = {"code": code, "message": message, "data": data}
        flat = {**data, "success": True} if isinstance(data, dict) else {}
        body = orjson.dumps(wrapper | {name: value for name, value in flat.items() if name not in wrapper})
        return web.Response(body=body, status=code, content_type="application/json")

    async def read(self, request: web.Request) -> Body:
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            raise Refusal(400, "VALIDATION_ERROR", "The body is not JSON.") from None
        if not isinstance(body, dict):
            raise Refusal(400, "VALIDATION_ERROR", "The body must be an object.")
        return body
