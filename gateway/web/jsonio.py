"""JSON in and out of HTTP: bodies read within limits and checked against wire models, replies written by orjson."""

from typing import Any, TypeVar

import msgspec
import orjson
from aiohttp import web
from pydantic import BaseModel, ValidationError

from gateway.errors import Invalid, TooLarge

M = TypeVar("M", bound=BaseModel)


async def read_as(request: web.Request, model: type[M]) -> M:
    """The body as the wire model, or a refusal that names the field."""
    return parse(await read_bytes(request), model)


async def read_bytes(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise TooLarge(f"the body is larger than {request.client_max_size} bytes") from error


def parse(body: bytes, model: type[M]) -> M:
    """What orjson cannot read it could not write either: nothing gets in that cannot go out again."""
    try:
        value = orjson.loads(body)
        if not isinstance(value, dict):
            raise Invalid("the body must be a JSON object")
        return model.model_validate(value)
    except orjson.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error}" if body.strip() else "the body is empty") from None
    except ValidationError as error:
        raise Invalid(_told(error), param=_where(error.errors(include_url=False)[0])) from None


def _told(error: ValidationError) -> str:
    """Up to three problems in words, each with the field it is about."""
    found = error.errors(include_url=False, include_input=False)
    told = [f"{where}: {one['msg']}" if (where := _where(one)) else str(one["msg"]) for one in found[:3]]
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(told) + more


def _where(found: Any) -> str:
    return ".".join(str(step) for step in found["loc"])


def dumps(value: Any) -> bytes:
    return orjson.dumps(value, default=msgspec.to_builtins)


def reply(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=dumps(value), status=status, content_type="application/json")
