"""How much memory a client takes at its peak for what is too much, against the peak for a tenth of it, in one run."""

import asyncio
import gzip
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.client import HttpClient
from gateway.client.transport import http_client
from gateway.errors import BackendFailed
from tests.support.client.byte_server import Answer, chunk, head, raw, serving
from tests.support.client.counting_server import answer

RATIO = 1.5
"""Peak for ten times as much to peak; what is held would make it ten."""
MB = 1_000_000


async def peak(said: Answer, ask: Callable[[HttpClient], Awaitable[Any]]) -> int:
    async with serving(said) as server:
        upstream = HttpClient(server.url)
        tracemalloc.start()
        try:
            with pytest.raises(BackendFailed, match="more than"):
                await ask(upstream)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            await upstream.close()


def line(megabytes: int) -> Answer:
    """One event that never ends."""
    async def talk(writer: asyncio.StreamWriter, asked: Any) -> None:
        writer.write(head() + chunk(b"data: "))
        for _ in range(megabytes):
            writer.write(chunk(b"x" * MB))
            await writer.drain()

    return talk


async def hear(upstream: HttpClient) -> None:
    async with upstream.stream("POST", "/") as events:
        while await events.read():
            pass


async def test_an_event_without_an_end() -> None:
    little, much = await peak(line(30), hear), await peak(line(300), hear)
    print(f"30 MB: {little / MB:.1f} MB at the peak, 300 MB: {much / MB:.1f} MB")
    assert much / little < RATIO


async def test_a_small_answer_that_unpacks_to_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_BODY_BYTES", 5 * MB)

    async def ask(upstream: HttpClient) -> None:
        await upstream.json("GET", "/")

    peaks = []
    for size in (20 * MB, 200 * MB):
        packed = gzip.compress(b"[" + b" " * size + b"]", 1)
        peaks.append(await peak(raw(answer(packed, Content_Encoding="gzip")), ask) - len(packed))
    print(f"20 MB: {peaks[0] / MB:.1f} MB at the peak, 200 MB: {peaks[1] / MB:.1f} MB")
    assert peaks[1] / peaks[0] < RATIO
