"""The first page of a list of sessions: plain, filtered, and searched, with few sessions and with many."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection
from urllib.parse import quote

from bench.dialects import find_filters, find_lists
from bench.measure import BenchFailure
from bench.report import Row
from bench.scenarios.runner import Bench
from bench.servers import Server, prefilled
from bench.stored_sessions import RARE, many_sessions, store_in_file

from .costs import PLACES, await_rest, cpu_ms, flat, sizes_of

MILLION = (100, 10_000, 1_000_000)
REQUESTS_PER_SAMPLE = 3


def measure_lists(bench: Bench) -> Iterator[Row]:
    """The CPU time of a first page on SQLite, in every dialect that has lists; pages that find nothing, too."""
    sizes, rounds = bench.effort.listed
    sizes = MILLION if bench.million else sizes
    with ExitStack() as stack:
        servers = list[Server]()
        for size in sizes:
            bench.tell(f"growth: {size:,} sessions")
            path = bench.folder / f"lists-{size}.db"
            asyncio.run(store_in_file(path, many_sessions(size), searched=RARE))
            servers.append(stack.enter_context(bench.start(prefilled(path))))
            await_rest(servers[-1])  # it looks for damage in its file, for longer the larger the file is
        for name, page in {**{path: path for path in find_lists()}, **find_filters()}.items():
            bench.tell(f"growth: {name}")
            costs: dict[str, list[float]] = {column: [] for column in PLACES}
            for turn in range(rounds + 1):
                for column, server in zip(PLACES, servers, strict=True):
                    took = cpu_ms(server, partial(_get, server, page), REQUESTS_PER_SAMPLE)
                    costs[column] += [took] if turn else []  # the first one reads sessions into memory
            yield flat(2)(f"{name} of {sizes_of(sizes)}", "ms CPU", costs)


def _get(server: Server, path: str) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("GET", quote(path, safe="/?&=[]:"))
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status != 200:
        raise BenchFailure(f"GET {path} was answered with {response.status}: {body[:200]!r}")
