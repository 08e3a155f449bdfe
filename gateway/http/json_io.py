"""Reads JSON bodies within limits, validates them against wire models, and writes responses, long ones in pieces."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from secrets import token_bytes
from typing import Any, TypeVar

import msgspec
import orjson
from aiohttp import Payload, web
from aiohttp.abc import AbstractStreamWriter
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema

from gateway.errors import Invalid
from gateway.field_errors import FieldError, field_errors, quote_value
from gateway.json_values import EncodedArray, JsonLimitExceeded, JsonObject, read_json_in_steps
from gateway.time_slices import SLICE_BYTES, next_slice, run_in_slices

from .request import read_body
from .security import Handler

M = TypeVar("M", bound=BaseModel)
ENCODING_COST_BYTES = 8 * 1024
"""The cost of making a value, as a number of bytes of a slice."""
PLACEHOLDER = token_bytes(24).hex().encode()
"""A placeholder for encoded JSON while the value around it is written; no client can know it."""
PLACEHOLDER_FRAGMENT = orjson.Fragment(PLACEHOLDER)
BODY_LIMIT = web.RequestKey("body_limit", int)


async def read_json(request: web.Request, model: type[M]) -> M:
    """Return the body as the wire model; raises an error that names the field."""
    return validate(model, await read_json_object(request))


async def read_json_object(request: web.Request) -> JsonObject:
    """Return the body, which must be a JSON object."""
    body = await read_bytes(request)
    if len(body) > SLICE_BYTES:
        await next_slice()
    return await parse_json_object(body)


async def read_bytes(request: web.Request) -> bytes:
    """Return the body, within the limit of the server and the lower limit of the route, if it has one."""
    most = min(request.client_max_size, request.get(BODY_LIMIT, request.client_max_size))
    return await read_body(request, most)


def limit_body_size(routes: Iterable[web.RouteDef], most: Callable[[], int]) -> list[web.RouteDef]:
    """Return the routes with a lower limit for bodies."""
    return [
        web.RouteDef(route.method, route.path, _with_body_limit(route.handler, most), route.kwargs) for route in routes
    ]


def _with_body_limit(handler: Handler, most: Callable[[], int]) -> Handler:
    @wraps(handler)
    async def within(request: web.Request) -> web.StreamResponse:
        request[BODY_LIMIT] = most()
        return await handler(request)

    return within


async def parse_json(body: bytes, model: type[M]) -> M:
    return validate(model, await parse_json_object(body))


async def parse_json_object(body: bytes) -> JsonObject:
    try:
        value = await run_in_slices(read_json_in_steps(body))
    except JsonLimitExceeded as error:
        raise Invalid(str(error), param=error.field or None) from None
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error}" if body.strip() else "the body is empty") from None
    if not isinstance(value, dict):
        raise Invalid(f"the body must be a JSON object, not {quote_value(value)}")
    return value


def validate(model: type[M], value: object, field: str = "") -> M:
    """Return a parsed value as the wire model; `field` is its path in the body."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = field_errors(error, value, field)
        raise Invalid(_summarize(found), param=found[0].field or None) from None


def _summarize(found: Sequence[FieldError]) -> str:
    """Describe up to three problems."""
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(map(str, found[:3])) + more


def dumps(value: object) -> bytes:
    return orjson.dumps(value, default=_json_default)


def _json_default(value: object) -> object:
    return orjson.Fragment(b"".join(value.pieces())) if isinstance(value, EncodedArray) else msgspec.to_builtins(value)


async def encode_array(values: Iterable[object]) -> EncodedArray:
    """Encode an array in slices; long values are few per slice."""
    found, size = list[bytes](), 0
    for value in values:
        found.append(dumps(value))
        size += ENCODING_COST_BYTES + len(found[-1])
        if size > SLICE_BYTES:
            size = 0
            await next_slice()
    return EncodedArray(found)


def json_response(value: object, status: int = 200) -> web.Response:
    """Return the value as JSON; long encoded arrays are sent in pieces."""
    arrays = list[EncodedArray]()

    def spelled(one: object) -> object:
        if not isinstance(one, EncodedArray):
            return msgspec.to_builtins(one)
        arrays.append(one)
        return PLACEHOLDER_FRAGMENT

    body = orjson.dumps(value, default=spelled)
    pieces, *rest = ([around] for around in (body.split(PLACEHOLDER) if arrays else [body]))
    for array, around in zip(arrays, rest, strict=True):
        pieces += array.pieces() + around
    return pieces_response(pieces, "application/json", status)


WHOLE_BODY_BYTES = 1024 * 1024
"""A response with at most so many bytes is sent as a whole."""
BLOCK_BYTES = 512 * 1024
"""The number of bytes of a longer response that are written in one slice."""


def pieces_response(pieces: Sequence[bytes], content_type: str, status: int = 200) -> web.Response:
    """Return a response whose body is these pieces."""
    body = b"".join(pieces) if sum(map(len, pieces)) <= WHOLE_BODY_BYTES else PiecewisePayload(pieces, content_type)
    return web.Response(body=body, status=status, content_type=content_type)


class PiecewisePayload(Payload):
    """A body that is never in memory as a whole a second time; its length is known before it is sent."""

    _autoclose = True

    def __init__(self, pieces: Sequence[bytes], content_type: str) -> None:
        super().__init__(pieces, content_type=content_type)
        self._pieces = pieces
        self._size = sum(map(len, pieces))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._pieces).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for block in _blocks(self._pieces):
            await next_slice()
            await writer.write(block)


def _blocks(pieces: Sequence[bytes]) -> Iterator[bytes]:
    """Join small pieces, and cut large ones."""
    block = bytearray()
    for piece in pieces:
        for start in range(0, len(piece), BLOCK_BYTES):
            block += piece[start:start + BLOCK_BYTES]
            if len(block) >= BLOCK_BYTES:
                yield bytes(block)
                block.clear()
    if block:
        yield bytes(block)


_COLLECTION_SCHEMAS = ("list", "tuple", "set", "frozenset", "dict")
"""Kinds of schemas for any number of values."""
_NO_SCHEMAS = ("default", "metadata", "serialization")


def _set_fail_fast(schema: Any) -> None:
    """Make every array and map of a schema, at any depth, fail at its first error."""
    waiting, seen = [schema], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        inside = one
        if isinstance(one, dict):
            inside = [inner for name, inner in one.items() if name not in _NO_SCHEMAS]
            if one.get("type") in _COLLECTION_SCHEMAS:
                one["fail_fast"] = True
        waiting += [inner for inner in inside if isinstance(inner, dict | list | tuple)]


class FailFast:
    """A base beside pydantic's: validation stops at the first error of an array or a map.

    pydantic collects every error. A body of a megabyte can have half a million, which take seconds to collect, and
    nobody reads them.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _set_fail_fast(schema)
        return schema


class WireModel(FailFast, BaseModel):
    """The base of what clients send: types are taken literally, unknown members are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())
