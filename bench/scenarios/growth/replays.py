"""Reading a stored session again: from its beginning, its middle and its end, in every dialect and transport."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

import aiohttp

from bench.dialects import Replay, find_pages, find_replays
from bench.measure import BenchFailure
from bench.replay_client import Learned, ReplayClient
from bench.report import Row
from bench.scenarios.runner import Bench
from bench.servers import Server, prefilled
from bench.stored_sessions import EVENTS_PER_TURN, StoredSession, long_session, store_in_file

from .costs import LARGE, MIDDLE, PLACES, SMALL, cpu_ms, flat, linear_row, sizes_of

COLUMN_OF = {SMALL: "zero", MIDDLE: "middle", LARGE: "end"}
ENDS = {"zero": "beginning", "middle": "middle", "end": "end"}
Read = Callable[[ReplayClient, StoredSession, str], Awaitable[int]]


def measure_replays(bench: Bench) -> Iterator[Row]:
    """What a replay costs, by how much is replayed; and what a page costs, by where it is."""
    sizes, _ = bench.effort.replayed
    bench.tell(f"growth: sessions of {sizes_of(sizes)} events")
    talks = [long_session(f"long{size}", size, EVENTS_PER_TURN) for size in sizes]
    runs = [long_session(f"one{size}", size, size) for size in sizes]
    path = bench.folder / "replays.db"
    asyncio.run(store_in_file(path, (record for _, records in (*talks, *runs) for record in records)))
    with bench.start(prefilled(path)) as server:
        for replay in find_replays():
            stored = [session for session, _ in (runs if replay.one_turn else talks)]
            yield from _replays(bench, server, replay, stored)
        yield from _pages(bench, server, [session for session, _ in talks])


def _replays(bench: Bench, server: Server, replay: Replay, stored: list[StoredSession]) -> Iterator[Row]:
    (sizes, rounds), learned = bench.effort.replayed, Learned()
    for place in ("zero",) if replay.from_zero_only else ENDS:
        bench.tell(f"growth: {replay.name} from {place}")
        costs: dict[str, list[float]] = {column: [] for column in PLACES}
        for turn in range(rounds + 1):
            for column, session in zip(PLACES, stored, strict=True):
                took = cpu_ms(server, partial(_read, server, replay.read, session, place, learned))
                if turn:  # the first one reads the session into memory
                    costs[column].append(took)
        name = f"{replay.name} from the {ENDS[place]}, {sizes_of(sizes)} events"
        yield flat()(name, "ms CPU", costs) if place == "end" else linear_row(name, costs, sizes)


def _pages(bench: Bench, server: Server, stored: list[StoredSession]) -> Iterator[Row]:
    """Pages of the longest session; and the last page of a long session and of a longer one."""
    sizes, rounds = bench.effort.replayed
    for name, read in find_pages().items():
        pages = _costs(server, read, rounds, {column: (stored[-1], place) for column, place in COLUMN_OF.items()})
        yield flat()(f"{name}, a page of 100: first / middle / last of {sizes[-1]:,} events", "ms CPU", pages)
        lasts = _costs(server, read, rounds, {SMALL: (stored[-2], "end"), LARGE: (stored[-1], "end")})
        yield flat()(f"{name}, the last page of 100 of {sizes_of(sizes[1:])} events", "ms CPU", lasts)


def _costs(
    server: Server, read: Read, rounds: int, pages: Mapping[str, tuple[StoredSession, str]],
) -> dict[str, list[float]]:
    costs: dict[str, list[float]] = {column: [] for column in pages}
    for turn in range(3 * rounds + 1):
        for column, (session, place) in pages.items():
            took = cpu_ms(server, partial(_read, server, read, session, place, Learned()))
            costs[column] += [took] if turn else []
    return costs


def _read(server: Server, read: Read, session: StoredSession, place: str, learned: Learned) -> None:
    async def run() -> int:
        async with aiohttp.ClientSession() as http:
            return await read(ReplayClient(http, f"http://127.0.0.1:{server.port}", learned), session, place)

    if not asyncio.run(run()):
        raise BenchFailure(f"nothing came of {session.session_id} from {place}")


