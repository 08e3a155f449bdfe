"""The front of the CAS reference server: keys, request ids, repeated requests, bodies, refusals and pages."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.cas.state import Body, mint
from conformance.faults.refusal import Refusal

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
}
LARGEST_BODY = 4 * 1024 * 1024
LARGEST_PAGE = 100
REQUEST_ID = web.RequestKey("request_id", str)
CURSORS = ("after_id", "before_id", "page")


class Front:
    """Checks keys, answers repeated requests, reads bodies, cuts pages and refuses requests."""

    def __init__(self, key: str | None = None) -> None:
        self.key = key
        self.first_answers: dict[str, tuple[Any, int, bytes]] = {}

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        request[REQUEST_ID] = self.request_id(request)
        try:
            self.authorize(request)
            return await self.once(request, handler)
        except Refusal as refusal:
            return self.refusal(request, refusal.status, refusal.words)
        except web.HTTPRequestEntityTooLarge:
            return self.too_large(request)
        except web.HTTPException as error:
            return self.refusal(request, error.status, error.reason)

    def request_id(self, request: web.Request) -> str:
        return request.headers.get("x-request-id") or mint("req")

    async def stamp(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["x-request-id"] = request[REQUEST_ID]

    def authorize(self, request: web.Request) -> None:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            raise Refusal(401, "The key is missing or wrong.")

    def refusal(self, request: web.Request, status: int, words: str) -> web.Response:
        error = {"type": ERRORS.get(status, "api_error"), "message": words}
        return web.json_response({"type": "error", "request_id": request[REQUEST_ID], "error": error}, status=status)

    def too_large(self, request: web.Request) -> web.Response:
        return self.refusal(request, 400, "The body is too large.")

    def repeat_key(self, request: web.Request) -> str | None:
        return request.headers.get("Idempotency-Key") or request.headers.get("X-Idempotency-Key")

    async def once(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Handle a request, unless it was handled before under the same key."""
        key = self.repeat_key(request)
        if key is None or request.method not in ("POST", "DELETE"):
            return await handler(request)
        asked = (request.method, request.path, await request.read())
        if key in self.first_answers:
            return self.again(key, asked)
        response = await handler(request)
        if isinstance(response, web.Response) and isinstance(response.body, bytes):
            self.first_answers[key] = (asked, response.status, response.body)
        return response

    def again(self, key: str, asked: Any) -> web.Response:
        before, status, body = self.first_answers[key]
        if not self.is_repeated(before, asked):
            raise Refusal(409, "The idempotency key was used for another request.")
        return web.Response(body=body, status=status, content_type="application/json")

    def is_repeated(self, before: Any, asked: Any) -> bool:
        return bool(before == asked)

    async def read(self, request: web.Request) -> Body:
        """The JSON object a request carries."""
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError as error:
            raise Refusal(400, f"The body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise Refusal(400, "The body must be an object.")
        return body

    def limit(self, request: web.Request) -> int:
        given = request.query.get("limit", "20")
        if not given.isdigit() or not int(given):
            raise Refusal(400, f"limit must be from 1 to {LARGEST_PAGE}.")
        return self.clamped(int(given))

    def clamped(self, limit: int) -> int:
        return min(limit, LARGEST_PAGE)

    def cursor(self, request: web.Request) -> tuple[str, str] | None:
        """The one cursor given, if any."""
        given = [(name, request.query[name]) for name in CURSORS if name in request.query]
        self.check_cursors([name for name, _ in given])
        return given[0] if given else None

    def check_cursors(self, names: list[str]) -> None:
        if len(names) > 1:
            raise Refusal(400, f"{' and '.join(names)} exclude each other.")

    def page(self, request: web.Request, items: list[Body]) -> Body:
        """One page of these items, in the order given."""
        limit, cursor = self.limit(request), self.cursor(request)
        places = {item["id"]: place for place, item in enumerate(items)}
        if cursor is not None and cursor[1] not in places:
            raise Refusal(400, f"{cursor[0]} names nothing in this list.")
        place = places[cursor[1]] if cursor else -1
        start = max(0, place - limit) if cursor and cursor[0] == "before_id" else self.place_after(place)
        stop = place if cursor and cursor[0] == "before_id" else start + limit
        return self.envelope(items[start:stop], has_more=stop < len(items))

    def place_after(self, place: int) -> int:
        """Where a page begins that comes after this place; the place before the list is -1."""
        return place + 1

    def envelope(self, data: list[Body], has_more: bool) -> Body:
        first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
        next_page = last if has_more else None
        return {"data": data, "first_id": first, "last_id": last, "has_more": has_more, "next_page": next_page}


def given_list(request: web.Request, name: str) -> list[str]:
    """A list in the query: name[]=a&name[]=b, or name=a."""
    return [*request.query.getall(f"{name}[]", []), *request.query.getall(name, [])]


def reply(body: Any, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, dumps=lambda value: orjson.dumps(value).decode())
