"""The HTTP client of the upstream side beside aiohttp's own: the CPU of reading the same responses into events."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

import aiohttp
import uvloop

from bench.contenders import mock
from bench.measure import BenchFailure, figure, paired_ratio
from bench.protocols import Workload, words
from bench.report import Row, at_least
from bench.scenarios.runner import Bench
from bench.servers import Server
from gateway.client import HttpClient, SseDecoder

NAME = "client"
OURS, THEIRS = COLUMNS = ("http1_connection", "aiohttp")
PATH = "/v1/chat/completions"
KEPT_AT = at_least(1.3, "1.3 ×")
"""Our own client stays if aiohttp's costs at least so much more per delta."""
Reader = Callable[[int, int, Workload], Awaitable[int]]
"""(port, responses at once, workload) → how many events were read."""


def measure_http_clients(bench: Bench) -> Iterator[Row]:
    """Many responses at once; their deltas come all at once, or twenty per second."""
    streams, deltas, rounds = bench.effort.http_clients
    with Server(mock(), bench.folder, bench.cores.server) as service:
        for label, talk in (("at once", words(deltas)), ("20/s", words(deltas, slowly=True))):
            bench.tell(f"client: {streams} responses, {deltas} deltas each, {label}")
            micros: dict[str, list[float]] = {name: [] for name in COLUMNS}
            for number in range(rounds + 1):
                for name in COLUMNS if number % 2 else reversed(COLUMNS):
                    spent = _spent(READERS[name], service.port, streams, talk)
                    if number:  # the first round warms up
                        micros[name].append(spent)
            figures = {name: figure(samples) for name, samples in micros.items()}
            ratio = paired_ratio(micros[THEIRS], micros[OURS])
            yield Row(NAME, f"{streams} × {deltas}, {label}: CPU", "µs/delta", figures, ratio, KEPT_AT)


def _spent(read: Reader, port: int, streams: int, talk: Workload) -> float:
    """Microseconds of this process per delta."""
    before = time.process_time()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        events = runner.run(_checked(read, port, streams, talk))
    return 1e6 * (time.process_time() - before) / events


async def _checked(read: Reader, port: int, streams: int, talk: Workload) -> int:
    events, wanted = await read(port, streams, talk), streams * (len(talk.deltas) + 4)
    if events != wanted:
        raise BenchFailure(f"{events} events were read, not {wanted}")
    return streams * len(talk.deltas)


def _request(talk: Workload) -> dict[str, object]:
    return {"model": "bench", "stream": True, "messages": [{"role": "user", "content": talk.message}]}


async def _read_ours(port: int, streams: int, talk: Workload) -> int:
    client = HttpClient(f"http://127.0.0.1:{port}")

    async def read() -> int:
        count = 0
        async with client.stream("POST", PATH, _request(talk)) as stream:
            while events := await stream.read():
                count += len(events)
        return count

    counts = await asyncio.gather(*(read() for _ in range(streams)))
    await client.close()
    return sum(counts)


async def _read_with_aiohttp(port: int, streams: int, talk: Workload) -> int:
    """With the same timeouts, and the same decoder of events."""
    limits = aiohttp.ClientTimeout(total=600, sock_connect=10, sock_read=60)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=limits, connector=connector) as session:

        async def read() -> int:
            count, decoder = 0, SseDecoder()
            async with session.post(f"http://127.0.0.1:{port}{PATH}", json=_request(talk)) as response:
                async for piece in response.content.iter_any():
                    count += len(decoder.feed(piece))
            return count

        return sum(await asyncio.gather(*(read() for _ in range(streams))))


READERS: Mapping[str, Reader] = {OURS: _read_ours, THEIRS: _read_with_aiohttp}
