"""Clearing away after a case: nothing is examined any more, so that few connections do."""

from collections.abc import Awaitable, Callable

import aiohttp

from conformance.kit.http import HttpClient


async def cleared(http: HttpClient, clear_away: Callable[[], Awaitable[None]]) -> None:
    """Have a case delete what it has made, over connections that are kept; where nobody minds, all is left."""
    if http.is_disposable:
        return
    http.transcript.remark("clearing away")
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        http.session = session
        await clear_away()
