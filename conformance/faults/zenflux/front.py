"""The front of the ZenFlux reference server over REST: wrapper, refusals and bodies that are read."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.zenflux.state import Body, Refusal

Kind = type | tuple[type, ...]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Front:
    """Reads bodies, wraps answers and refuses requests."""

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return self.explained(self.refusal(refusal.status, refusal.words), refusal.code, refusal.words)
        except web.HTTPException as error:
            return self.refusal(error.status, error.reason)

    def refusal(self, status: int, words: str) -> web.Response:
        return self.wrap(status, words, None)

    def explained(self, answer: web.Response, code: str, words: str) -> web.Response:
        """A refusal that also says in a word what is wrong."""
        body = orjson.loads(answer.text or "{}") | {"detail": {"code": code, "message": words}}
        return web.json_response(body, status=answer.status)

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

    def fields(self, body: Body, kinds: Mapping[str, Kind]) -> Body:
        """The members of a body that have a meaning; null is as good as absent."""
        known = {name: body[name] for name in kinds if body.get(name) is not None}
        for name, value in known.items():
            if not isinstance(value, kinds[name]) or (isinstance(value, bool) and kinds[name] is not bool):
                raise Refusal(400, "VALIDATION_ERROR", f"{name} has the wrong type.")
        return known

    def flag(self, request: web.Request, name: str, usual: bool = False) -> bool:
        """What the query says, true or false."""
        given = request.query.get(name, str(usual).lower())
        if given not in ("true", "false"):
            raise Refusal(400, "VALIDATION_ERROR", f"{name} is true or false.")
        return given == "true"
