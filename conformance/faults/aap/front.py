"""The front of the AAP reference server: keys, bodies that are read, and refusals."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from conformance.faults.refusal import Refusal

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Front:
    """Checks keys, reads bodies and refuses requests."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self.check_key(request)
            return await handler(request)
        except Refusal as refusal:
            return self.refusal(refusal.status, refusal.words)
        except web.HTTPException as error:
            return self.refusal(error.status, error.reason)

    def check_key(self, request: web.Request) -> None:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            raise Refusal(401, "the key is missing or wrong")

    def refusal(self, status: int, words: str) -> web.Response:
        return web.json_response({"error": words}, status=status)

    async def read(self, request: web.Request, model: type[BaseModel]) -> Any:
        try:
            return model.model_validate(orjson.loads(await request.read()))
        except orjson.JSONDecodeError as error:
            raise Refusal(400, f"the body is not JSON: {error}") from None
        except ValidationError as error:
            raise Refusal(400, str(error)) from None
