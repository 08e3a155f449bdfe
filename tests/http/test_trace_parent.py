"""The header `traceparent` of a request holds while the request is answered, and not for the next one."""

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway.http import take_traceparent
from gateway.trace_context import TRACEPARENT

HEADER = f"00-{'ab' * 16}-{'cd' * 8}-01"


async def seen(**headers: str) -> str:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=TRACEPARENT.get())

    response = await take_traceparent(make_mocked_request("GET", "/", headers=headers), handler)
    assert isinstance(response, web.Response)
    return response.text or ""


async def test_the_trace_holds_for_one_request() -> None:
    assert await seen(traceparent=HEADER) == HEADER
    assert TRACEPARENT.get() == "" and await seen() == ""


async def test_nonsense_is_not_handed_on() -> None:
    assert await seen(traceparent="nonsense") == ""
