"""Gives every request an id: the one that the client sent, if it is valid, or a new one; the response repeats it."""

import re

from aiohttp import web

from gateway.ids import random_id

REQUEST_ID_HEADER = "X-Request-Id"
REQUEST_ID = web.RequestKey("request_id", str)
_SAFE_ID = re.compile(r"[\x21-\x7e]{1,128}")


def request_id_of(request: web.BaseRequest) -> str:
    found = request.get(REQUEST_ID)
    if found is None:
        given = request.headers.get(REQUEST_ID_HEADER, "")
        found = request[REQUEST_ID] = given if _SAFE_ID.fullmatch(given) else random_id("req")
    return found


async def add_request_id(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Add the id to a response; called before the response is sent."""
    response.headers.setdefault(REQUEST_ID_HEADER, request_id_of(request))
