"""One more of many: a session with its first turn, a resource; and lists of resources that grow."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection

from bench.dialects import Addition, find_additions, find_schedules
from bench.load import create_sessions, turns_in_a_row
from bench.measure import BenchFailure
from bench.protocols import burst
from bench.report import Row
from bench.scenarios.runner import Bench
from bench.servers import EVERY_DIALECT, Server, prefilled
from bench.stored_sessions import many_sessions, store_in_file, store_schedules

from .costs import PLACES, await_rest, cpu_ms, flat, sizes_of

ROUNDS = 5
SCHEDULES_PER_BLOCK = 10


def measure_additions(bench: Bench) -> Iterator[Row]:
    """What one more costs, by how many there are already."""
    yield from _sessions(bench)
    for addition in find_additions():
        yield from _resources(bench, addition)
    yield from _schedules(bench)


def _sessions(bench: Bench) -> Iterator[Row]:
    """A new session and its first turn, with few sessions on SQLite and with many."""
    sizes, block = bench.effort.added
    with ExitStack() as stack:
        servers = list[Server]()
        for size in sizes:
            bench.tell(f"growth: one more session than {size:,}")
            path = bench.folder / f"added-{size}.db"
            asyncio.run(store_in_file(path, many_sessions(size)))
            servers.append(stack.enter_context(bench.start(prefilled(path))))
        costs = _costs(servers, lambda server: _send(server, block), block)
        yield flat()(f"a new session and its first turn, after {sizes_of(sizes)}", "ms CPU", costs)


def _send(server: Server, sessions: int) -> None:
    turns_in_a_row(server, create_sessions(server, sessions), burst(10))


def _resources(bench: Bench, addition: Addition) -> Iterator[Row]:
    asked, block = bench.effort.added
    sizes = [min(size, addition.most) for size in asked]
    servers_of_three = (EVERY_DIALECT,) * len(sizes)
    with bench.running(*servers_of_three) as servers:
        for server, size in zip(servers, sizes, strict=True):
            bench.tell(f"growth: {size:,} {addition.name}")
            post_additions(addition, server, range(size))
        costs = _costs(servers, lambda server: post_additions(addition, server, range(block)), block)
        yield flat()(f"one more of {sizes_of(sizes)} {addition.name}", "ms CPU", costs)


def _schedules(bench: Bench) -> Iterator[Row]:
    """One more schedule than all users have together; one user may have no more than a hundred."""
    (_, few, many), _ = bench.effort.added
    sizes = min(few // 10, 10), min(few, 100), min(many, 1_000)
    with ExitStack() as stack:
        servers = list[Server]()
        for size in sizes:
            bench.tell(f"growth: one more schedule than {size:,}")
            path = bench.folder / f"schedules-{size}.db"
            asyncio.run(store_schedules(path, size))
            servers.append(stack.enter_context(bench.start(prefilled(path))))
        for server in servers:
            await_rest(server)  # a server that has just started looks at all schedules once
        for addition in find_schedules():
            costs = _costs(servers, partial(_add_schedules, addition), SCHEDULES_PER_BLOCK)
            yield flat()(f"one more of {sizes_of(sizes)} {addition.name}", "ms CPU", costs)


def _add_schedules(addition: Addition, server: Server) -> None:
    post_additions(addition, server, range(SCHEDULES_PER_BLOCK))


def _costs(servers: Sequence[Server], work: Callable[[Server], None], block: int) -> dict[str, list[float]]:
    """The CPU time of one of so many that the work creates."""
    costs: dict[str, list[float]] = {column: [] for column in PLACES}
    for turn in range(ROUNDS + 1):
        for column, server in zip(PLACES, servers, strict=True):
            took = cpu_ms(server, partial(work, server)) / block
            costs[column] += [took] if turn else []
    return costs


def post_additions(addition: Addition, server: Server, numbers: Iterable[int]) -> None:
    """Create resources one after the other on one connection."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=600)
    for number in numbers:
        content = addition.body(number)
        body = content if isinstance(content, bytes) else json.dumps(content)
        connection.request("POST", addition.path, body, {"Content-Type": addition.content_type})
        response = connection.getresponse()
        answer = response.read()
        if response.status not in (200, 201):
            raise BenchFailure(f"POST {addition.path} was answered with {response.status}: {answer[:200]!r}")
    connection.close()
