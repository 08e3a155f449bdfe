"""JSON in and out of HTTP: bodies read within limits and checked against wire models, replies written by orjson."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from secrets import token_bytes
from typing import Any, TypeVar

import msgspec
import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from gateway.errors import Invalid
from gateway.field_errors import FieldError, field_errors, shown
from gateway.model import Encoded, LimitExceeded, reading
from gateway.time_slices import SLICE_BYTES, in_turns, turn

from .bodies import read_body
from .long_answers import answer

M = TypeVar("M", bound=BaseModel)
MAKING = 8 * 1024
"""How many bytes of a slice the time to make a value is worth."""
MARK = token_bytes(24).hex().encode()
"""Stands for what is encoded already while what is around it is written; nobody else can know it."""
PLACE = orjson.Fragment(MARK)
BODY_LIMIT = web.RequestKey("body_limit", int)


async def read_as(request: web.Request, model: type[M]) -> M:
    """The body as the wire model, or a refusal that names the field."""
    body = await read_bytes(request)
    if len(body) > SLICE_BYTES:
        await turn()
    return await parse(body, model)


async def read_bytes(request: web.Request) -> bytes:
    """The body, within the server's limit and the lower one of whoever set `BODY_LIMIT`."""
    most = min(request.client_max_size, request.get(BODY_LIMIT, request.client_max_size))
    return await read_body(request, most)


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


async def parse(body: bytes, model: type[M]) -> M:
    try:
        value = await in_turns(reading(body))
    except LimitExceeded as error:
        raise Invalid(str(error), param=error.field or None) from None
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error}" if body.strip() else "the body is empty") from None
    if not isinstance(value, dict):
        raise Invalid(f"the body must be a JSON object, not {shown(value)}")
    return checked(model, value)


def checked(model: type[M], value: Any, field: str = "") -> M:
    """A value that was read already as the wire model; `field` is where in the body it stands."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = field_errors(error, value, field)
        raise Invalid(_told(found), param=found[0].field or None) from None


def _told(found: Sequence[FieldError]) -> str:
    """Up to three problems in words."""
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(map(str, found[:3])) + more


def dumps(value: Any) -> bytes:
    return orjson.dumps(value, default=_spelled)


def _spelled(value: Any) -> Any:
    return orjson.Fragment(b"".join(value.pieces())) if isinstance(value, Encoded) else msgspec.to_builtins(value)


async def encoded(values: Iterable[Any]) -> Encoded:
    """An array of these values; made and encoded a slice at a time, long values few at a time."""
    found, size = list[bytes](), 0
    for value in values:
        found.append(dumps(value))
        size += MAKING + len(found[-1])
        if size > SLICE_BYTES:
            size = 0
            await turn()
    return Encoded(found)


def reply(value: Any, status: int = 200) -> web.Response:
    """The value as JSON; long arrays that are encoded already are sent a piece at a time."""
    arrays = list[Encoded]()

    def spelled(one: Any) -> Any:
        if not isinstance(one, Encoded):
            return msgspec.to_builtins(one)
        arrays.append(one)
        return PLACE

    body = orjson.dumps(value, default=spelled)
    pieces, *rest = ([around] for around in (body.split(MARK) if arrays else [body]))
    for array, around in zip(arrays, rest, strict=True):
        pieces += array.pieces() + around
    return answer(pieces, "application/json", status)
