"""JSON in and out of HTTP: bodies read within limits and checked against wire models, replies written by orjson."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

import msgspec
import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from gateway.errors import Invalid, TooLarge
from gateway.model import is_too_deep

M = TypeVar("M", bound=BaseModel)
BODY_LIMIT = web.RequestKey("body_limit", int)


async def read_as(request: web.Request, model: type[M]) -> M:
    """The body as the wire model, or a refusal that names the field."""
    return parse(await read_bytes(request), model)


async def read_bytes(request: web.Request) -> bytes:
    """The body, within the server's limit and the lower one of whoever set `BODY_LIMIT`."""
    most = min(request.client_max_size, request.get(BODY_LIMIT, request.client_max_size))
    try:
        body = await request.read() if (request.content_length or 0) <= most else None
    except web.HTTPRequestEntityTooLarge:
        body = None
    if body is None or len(body) > most:
        raise TooLarge(f"the body is larger than {most} bytes")
    return body


def limited(routes: Iterable[web.RouteDef], most: Callable[[], int]) -> list[web.RouteDef]:
    """The same routes, with bodies of at most so many bytes."""
    return [web.RouteDef(route.method, route.path, _limited(route.handler, most), route.kwargs) for route in routes]


def _limited(handler: Any, most: Callable[[], int]) -> Any:
    @wraps(handler)
    async def within(request: web.Request) -> web.StreamResponse:
        request[BODY_LIMIT] = most()
        response: web.StreamResponse = await handler(request)
        return response

    return within


def loads(text: bytes | str) -> Any:
    """Nothing gets in that cannot go out again: what is nested too deep to be written counts as not to be read."""
    value = orjson.loads(text)
    if is_too_deep(value, text if isinstance(text, bytes) else text.encode()):
        raise orjson.JSONDecodeError("nested too deep", "", 0)
    return value


def parse(body: bytes, model: type[M]) -> M:
    try:
        value = loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error}" if body.strip() else "the body is empty") from None
    if not isinstance(value, dict):
        raise Invalid("the body must be a JSON object")
    return checked(model, value)


def checked(model: type[M], value: Any, field: str = "") -> M:
    """A value that was read already as the wire model; `field` is where in the body it stands."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = _found(error, value, field)
        raise Invalid(_told(found), param=found[0][0]) from None


def _found(error: ValidationError, value: Any, field: str) -> list[tuple[str, str]]:
    """Each problem after its field; of a value that may be of several kinds, what is wrong deepest in it."""
    found = [(_where(one, value, field), one["msg"]) for one in error.errors(include_url=False, include_input=False)]
    return [one for one in found if not any(where.startswith(f"{one[0]}.") for where, _ in found)]


def _told(found: Sequence[tuple[str, str]]) -> str:
    """Up to three problems in words."""
    told = [f"{where}: {words}" if where else words for where, words in found[:3]]
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(told) + more


def _where(problem: Any, value: Any, field: str) -> str:
    """The way to a field through what the client sent; which of several kinds was tried there is not part of it."""
    steps, ahead = [field], len(problem["loc"])
    for step in problem["loc"]:
        ahead -= 1
        if (isinstance(value, dict) and step in value) or (isinstance(value, list) and step in range(len(value))):
            value = value[step]
            steps.append(str(step))
        elif not ahead and problem["type"] == "missing":
            steps.append(str(step))
    return ".".join(filter(None, steps))


def dumps(value: Any) -> bytes:
    return orjson.dumps(value, default=msgspec.to_builtins)


def reply(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=dumps(value), status=status, content_type="application/json")
