"""The first page of a list of sessions: with few sessions, and with many."""

import time
from collections.abc import Iterator
from http.client import HTTPConnection

from bench.dialects import find_lists
from bench.load import create_sessions
from bench.measure import BenchFailure, figure, paired_ratio
from bench.report import Row, at_most
from bench.scenarios.runner import OURS, Bench
from bench.servers import EVERY_DIALECT, Server

FLAT = at_most(2.0, "2 × (flat)")


def measure_lists(bench: Bench) -> Iterator[Row]:
    """How long the first page takes with few and with many sessions on SQLite, in every dialect that has lists."""
    few, many, rounds = bench.effort.listed
    bench.tell(f"lists: {few} and {many} sessions")
    with bench.start(EVERY_DIALECT) as small, bench.start(EVERY_DIALECT) as large:
        create_sessions(small, few)
        create_sessions(large, many)
        for path in find_lists():
            for server in (small, large):
                _milliseconds(server, path)  # the first one reads sessions into memory
            pairs = [(_milliseconds(small, path), _milliseconds(large, path)) for _ in range(rounds)]
            short, long = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            yield Row("lists", f"{path} of {few:,}", "ms", {OURS: figure(short)})
            yield Row("lists", f"{path} of {many:,}", "ms", {OURS: figure(long)}, paired_ratio(long, short), FLAT)


def _milliseconds(server: Server, path: str) -> float:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=600)
    begun = time.perf_counter()
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    took = time.perf_counter() - begun
    connection.close()
    if response.status != 200:
        raise BenchFailure(f"GET {path} was answered with {response.status}: {body[:200]!r}")
    return took * 1000
