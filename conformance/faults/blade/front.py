"""The front of the Blade reference server: keys, bodies that are read, sessions by id, answers and refusals."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.blade.state import Body, Refusal, Session, State, copied
from conformance.faults.blade.writer import Writer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
OPEN = ("/api/version", "/api/health", "/healthz", "/api/share/", "/socket.io/")
USER = "user_reference"


class Front:
    """Checks keys, reads bodies, finds sessions, answers and refuses requests."""

    def __init__(self, key: str | None, state: State, writer: Writer) -> None:
        self.key = key
        self.state = state
        self.writer = writer

    def is_known(self, token: Any) -> bool:
        return self.key is None or token == self.key or token in self.state.tokens.values()

    def session(self, name: Any) -> Session:
        try:
            return self.state.sessions[name]
        except (KeyError, TypeError):
            raise Refusal(404, "there is no such session") from None

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self.check_key(request)
            return await handler(request)
        except Refusal as refusal:
            return self.refusal(refusal.status, refusal.words)
        except web.HTTPException as error:
            return self.refusal(error.status, error.reason)

    def check_key(self, request: web.Request) -> None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not request.path.startswith(OPEN) and not self.is_known(token):
            raise Refusal(401, "the token is missing or wrong")

    def refusal(self, status: int, words: str) -> web.Response:
        return web.json_response({"detail": words}, status=status)

    def reply(self, kind: str, body: Any, status: int = 200) -> web.Response:
        return web.json_response(self.writer.shown(kind, copied(body)), status=status)

    async def read(self, request: web.Request, **wanted: Any) -> Body:
        """The body as an object that has these members with these types, `None` among the types for optional ones."""
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError as error:
            raise Refusal(400, f"the body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise Refusal(422, "the body is not an object")
        for name, kinds in wanted.items():
            if not isinstance(body.get(name), kinds):
                raise Refusal(422, f"{name} is missing or of a wrong type")
        return body

    def check_length(self, body: Mapping[str, Any], **limits: int) -> None:
        for name, longest in limits.items():
            if name in body and not (isinstance(body[name], str) and 1 <= len(body[name]) <= longest):
                raise Refusal(422, f"{name} has 1 to {longest} characters")

    def find(self, request: web.Request) -> Session:
        return self.session(request.match_info["id"])

    def page(self, request: web.Request, longest: int) -> tuple[int, int]:
        """limit and offset, in bounds."""
        try:
            limit, offset = int(request.query.get("limit", 20)), int(request.query.get("offset", 0))
        except ValueError:
            raise Refusal(422, "limit and offset are numbers") from None
        if not 1 <= limit <= longest or offset < 0:
            raise Refusal(422, "limit or offset is out of bounds")
        return limit, offset

    def take(self, shelf: dict[str, Body], request: web.Request) -> Body:
        """The resource that a request names."""
        try:
            return shelf[request.match_info["id"]]
        except KeyError:
            raise Refusal(404, "there is no such thing") from None
