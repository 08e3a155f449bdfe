"""The dialects beside each other: the CPU of a delta over each transport, and of a session that many clients watch."""

import asyncio
import re
import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import aiohttp

from bench.client import Connections, fetch
from bench.dialects import Stream, find_streams, find_watches
from bench.load import create_sessions, paced_turns, warm_up
from bench.measure import BenchFailure, figure, paired_ratio
from bench.protocols import PAUSE, slow
from bench.report import Row, at_most
from bench.scenarios.runner import OURS, Bench
from bench.servers import ALL_IN_MEMORY, BARE, GET, Server

NAME = "transports"
FIRST = "aap"
"""The dialect that the others are compared with."""
READ = 1 << 18
STEP_SECONDS = 0.5
"""So long does a watcher wait for the answer to each thing that it sends; nothing is measured meanwhile."""
SETTLE_DELTAS = 10
"""After so many deltas all watchers are live."""
LAST_WORDS = b"(nothing)"
"""The demo agent says this at the end of a reply to nothing but directives."""


def measure_transports(bench: Bench) -> Iterator[Row]:
    """Deltas one by one to clients of each dialect; the cost of a turn is taken off."""
    clients, deltas, rounds = bench.effort.transports
    streams, micros = find_streams(), dict[str, list[float]]()
    with bench.start(ALL_IN_MEMORY) as server:
        for number in range(rounds + 1):
            for name, stream in streams.items():
                bench.tell(f"transports: {clients} clients of {name}, {deltas} deltas each")
                spent = [_spent(server, stream, clients, count) for count in (1, 1 + deltas)]
                if number:  # the first round warms up
                    micros.setdefault(name, []).append(1e6 * (spent[1] - spent[0]) / (clients * deltas))
    for name, stream in streams.items():
        ratio = paired_ratio(micros[name], micros[FIRST]) if name != FIRST else None
        aim = at_most(stream.aim, f"{stream.aim:g} ×") if stream.aim is not None else None
        yield Row(NAME, f"{clients} × 20/s {stream.name}, to {FIRST}", "µs/delta", {OURS: figure(micros[name])}, ratio,
                  aim)
    yield from _watched(bench)


def _spent(server: Server, stream: Stream, clients: int, deltas: int) -> float:
    """The CPU seconds of the server while each client is told so many deltas; a dialect may join some of them."""
    before = server.spent()
    counts = asyncio.run(_told(f"http://127.0.0.1:{server.port}", stream, clients, slow(deltas).message))
    if any(count < deltas / 2 for count in counts):
        raise BenchFailure(f"{stream.name}: {min(counts)} deltas of {deltas} came")
    return (server.spent() - before).cpu


async def _told(address: str, stream: Stream, clients: int, message: str) -> list[int]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        return await asyncio.gather(*(stream.read(http, address, message) for _ in range(clients)))


# -- one session, many watchers ---------------------------------------------------------------------------------------

def _watched(bench: Bench) -> Iterator[Row]:
    """The CPU per watcher and delta, beside that of a bare server that writes one event to each of as many clients."""
    count, deltas = bench.effort.watchers
    bench.tell(f"transports: {count} watchers of one session, {deltas} deltas")
    kinds = find_watches()
    talk = slow(max(deltas, 40))
    with bench.running(ALL_IN_MEMORY, BARE) as (server, bare):
        warm_up([server, bare], talk)
        bare_micros = paced_turns(bare, count, talk).cpu_micros
        micros = _watch(server, count, deltas)
    yield Row(NAME, f"one session, {count:,} watchers in {len(kinds)} dialects", "µs/watcher and delta",
              {OURS: figure([micros]), BARE.name: figure([bare_micros])}, paired_ratio([micros], [bare_micros]),
              at_most(1.2, "1.2 ×"))


def _watch(server: Server, count: int, deltas: int) -> float:
    kinds, session = list(find_watches().values()), create_sessions(server, 1)[0]
    lead = int(STEP_SECONDS / PAUSE) * 5 + SETTLE_DELTAS
    with Connections(server.port) as turn, Connections(server.port) as watching:
        turn.open(1)[0].sendall(server.wire.turn(session, slow(lead + deltas + SETTLE_DELTAS).message))
        turn_id = _turn_id(server, session)
        sockets = _open_watchers(watching, count)
        said = [kinds[number % len(kinds)](session, turn_id) for number in range(count)]
        with Drain(sockets) as drain:
            for step in range(max(map(len, said))):
                for connection, steps in zip(sockets, said, strict=True):
                    if step < len(steps):
                        connection.sendall(steps[step])
                drain.read(STEP_SECONDS)
            drain.read(SETTLE_DELTAS * PAUSE)
            before = server.spent()
            drain.read(deltas * PAUSE)
            spent = server.spent() - before
            drain.read_until(LAST_WORDS)
    return 1e6 * spent.cpu / (count * deltas)


def _open_watchers(watching: Connections, count: int) -> Sequence[socket.socket]:
    while len(watching.sockets) < count:
        watching.open(min(50, count - len(watching.sockets)))
    return watching.sockets


def _turn_id(server: Server, session: str) -> str:
    """The id of the turn that runs, from the records of the session."""
    for _ in range(100):
        records = fetch(server.port, GET.format(f"/replay/{session}").encode()).body()
        if found := re.search(rb'"turn_id":"([^"]+)"', records):
            return found[1].decode()
        time.sleep(0.01)
    raise BenchFailure("the turn did not begin")


class Drain:
    """Reads what many sockets receive, and looks only at the end of each."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._poll = select.epoll()
        self._sockets = {one.fileno(): one for one in sockets}
        self._tails = dict.fromkeys(self._sockets, b"")

    def __enter__(self) -> "Drain":
        for number, one in self._sockets.items():
            one.setblocking(True)
            self._poll.register(number, select.EPOLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        self._poll.close()

    def read(self, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            for number, _ in self._poll.poll(left):
                self._take(number)

    def read_until(self, words: bytes) -> None:
        """Read until every socket has received these words."""
        until = time.perf_counter() + 30
        while any(words not in tail for tail in self._tails.values()):
            if time.perf_counter() > until:
                missing = sum(words not in tail for tail in self._tails.values())
                raise BenchFailure(f"{missing} of {len(self._tails)} watchers did not see the end")
            self.read(0.1)

    def _take(self, number: int) -> None:
        with suppress(BlockingIOError):
            piece = self._sockets[number].recv(READ)
            self._tails[number] = (self._tails[number] + piece)[-4096:]
            if not piece:
                self._poll.unregister(number)
