"""The memory of a server: idle, per session, per event and per stream; and its time to start."""

import time
from collections.abc import Iterator

from bench.client import Connections, RequestBatch
from bench.load import create_sessions, turns_in_a_row, warm_up
from bench.measure import BenchFailure, figure
from bench.protocols import burst, slow
from bench.report import Row, at_most
from bench.scenarios.runner import OURS, Bench, compared
from bench.servers import CONTENDERS, DRAGOMAN, Server


def measure_memory(bench: Bench) -> Iterator[Row]:
    """The memory of a server: idle, per session, per event of the log, per open stream."""
    effort = bench.effort
    bench.tell(f"memory: {effort.idle_sessions} sessions, {effort.open_streams} open streams")
    with bench.running(*CONTENDERS) as servers:
        idle = {server.contender.name: [server.rss() / 2**20] for server in servers}
        yield compared("memory", "idle", "MB", idle, at_most(60, "60 MB", OURS))
        per_event = _per_event(servers[0], effort.logged_events)
        yield Row("memory", "per event in the memory log", "bytes", {OURS: figure([per_event])})
    with bench.start(DRAGOMAN) as server:
        per_session = _per_session(server, effort.idle_sessions) / 2**10
        aim = at_most(4, "4 KiB", OURS)
        yield Row("memory", "per idle session", "KiB", {OURS: figure([per_session])}, aim=aim)
    with bench.running(*CONTENDERS) as servers:
        warm_up(servers, burst(5))
        warm_up(servers, HELD_OPEN)
        held = {s.contender.name: [_per_stream(s, effort.open_streams, per_event) / 2**10] for s in servers}
    yield compared("memory", "per open stream, its log apart", "KiB", held, at_most(48, "48 KiB", OURS))


HELD_OPEN = slow(60)
"""Longer than the measurement."""


def _per_event(server: Server, events: int) -> float:
    warm_up([server], burst(100))
    session, before = create_sessions(server, 1), server.rss()
    turns_in_a_row(server, session * 10, burst(events // 10))
    return (server.rss() - before) / events


def _per_session(server: Server, count: int) -> float:
    create_sessions(server, 100)
    before = server.rss()
    create_sessions(server, count)
    return (server.rss() - before) / count


def _per_stream(server: Server, count: int, per_event: float) -> float:
    """The growth while so many streams are open, without what the log keeps of them."""
    sessions = create_sessions(server, count)
    before = server.rss()
    with Connections(server.port) as connections:
        while len(connections.sockets) < count:
            connections.open(min(50, count - len(connections.sockets)))
            time.sleep(0.02)
        requests = [server.wire.turn(session, HELD_OPEN.message) for session in sessions]
        with RequestBatch(connections.sockets, requests) as playing:
            playing.read(2.0)
            held = server.rss() - before
    deltas = [len(answer.arrivals(server.wire.delta_mark)) for answer in playing.answers]
    if not all(deltas):
        raise BenchFailure(f"{server.contender.name}: {deltas.count(0)} of {count} open streams said nothing")
    logged = sum(deltas) * per_event if server.contender is DRAGOMAN else 0.0
    return (held - logged) / count


def start_up(bench: Bench) -> Iterator[Row]:
    """From the start of the process to the first 200 on /readyz."""
    bench.tell(f"start: {bench.effort.starts} starts of each")
    found: dict[str, list[float]] = {contender.name: [] for contender in CONTENDERS}
    for _ in range(bench.effort.starts):
        for contender in CONTENDERS:
            with bench.start(contender) as server:
                found[contender.name].append(server.seconds_to_ready)
    yield compared("start", "process start to ready", "s", found, at_most(0.6, "0.6 s", OURS))
