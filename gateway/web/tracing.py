"""Every request has an id: its own, if it brings one fit to be written, else a new one; the answer repeats it."""

import re

from aiohttp import web

from gateway.ids import unguessable

HEADER = "X-Request-Id"
REQUEST_ID = web.RequestKey("request_id", str)
_PLAIN = re.compile(r"[\x21-\x7e]{1,128}")


def request_id_of(request: web.BaseRequest) -> str:
    found = request.get(REQUEST_ID)
    if found is None:
        given = request.headers.get(HEADER, "")
        found = request[REQUEST_ID] = given if _PLAIN.fullmatch(given) else unguessable("req")
    return found


async def name_request(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """To be called before a response is sent."""
    response.headers.setdefault(HEADER, request_id_of(request))
