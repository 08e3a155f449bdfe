"""Cleanup after a case: deletes what the case created, over few connections, and counts what cannot be deleted."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import aiohttp

from conformance.kit.expect import Failed
from conformance.kit.http import HttpClient, Reply
from conformance.kit.proxy import proxy_for

GONE = (404, 410)
AT_ONCE = 8


async def cleared(http: HttpClient, clear_away: Callable[[], Awaitable[None]]) -> None:
    """Let a case delete what it created, over kept connections; a disposable server is left as it is."""
    if http.is_disposable:
        return
    http.transcript.remark("clearing away")
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, proxy=proxy_for(http.base)) as session:
        http.session = session
        await clear_away()


def is_gone(reply: Reply) -> bool:
    """Whether the answer to a DELETE says that the resource does not exist any more."""
    return 200 <= reply.status < 300 or reply.status in GONE


async def delete_all(
    http: HttpClient,
    paths: Sequence[str],
    within: float,
    *,
    at_once: int = AT_ONCE,
    is_done: Callable[[Reply], bool] = is_gone,
    otherwise: Callable[[str], Awaitable[object]] | None = None,
) -> None:
    """Delete the resources at these paths; the transcript lists those that remain.

    `otherwise` is called with each path that cannot be deleted.
    """
    http.transcript.left += paths
    turns = asyncio.Semaphore(at_once)

    async def delete(path: str) -> None:
        async with turns:
            try:
                reply = await http.ask("DELETE", path)
                if is_done(reply):
                    http.transcript.left.remove(path)
                elif otherwise is not None:
                    await otherwise(path)
            except Failed as error:
                http.transcript.remark(f"clearing away: {error}")

    try:
        async with asyncio.timeout(within):
            await asyncio.gather(*map(delete, paths))
    except TimeoutError:
        http.transcript.remark("clearing away: took too long")
