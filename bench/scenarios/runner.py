"""What all scenarios share: how much work is done, the servers of a scenario, and rows that compare them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench.load import Sample
from bench.measure import Cores, figure, paired_ratio
from bench.report import Aim, Row
from bench.servers import DRAGOMAN, Contender, Server

BUSY_CLIENT = 0.9
DISTURBED = 0.1
OURS = DRAGOMAN.name


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work each scenario does."""

    name: str
    burst: Mapping[int, tuple[int, int]]
    """Turns at once → deltas of each, rounds."""
    turns: tuple[int, int]
    """Turns at once, rounds."""
    paced: tuple[int, int, int]
    """Streams, deltas of each, rounds."""
    first_events: tuple[int, int]
    """Turns in a block, blocks."""
    open_streams: int
    idle_sessions: int
    logged_events: int
    starts: int
    many_sessions: int
    history: tuple[int, int]
    """Turns, deltas of each."""
    growth: tuple[int, int]
    """Turns in a block, blocks."""
    turns_before: tuple[tuple[int, int, int], int]
    """How many turns a session has had before the ones that are measured, turns in a block."""
    replayed: tuple[tuple[int, int, int], int]
    """Events of the sessions, rounds."""
    listed: tuple[tuple[int, int, int], int]
    """Sessions, requests."""
    added: tuple[tuple[int, int, int], int]
    """How many there are before one is added, how many are added in a block."""
    held: tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
    """Three sizes each: idle sessions, open streams, stored resources."""
    history_tokens: tuple[int, int]
    """The tokens of a history that comes in one request, rounds."""
    fleet: tuple[int, int, int]
    """Turns at once, deltas of each, rounds."""
    traced: tuple[int, int, int]
    """Turns at once, deltas of each, rounds."""
    upstream: Mapping[int, tuple[int, int, int]]
    """Turns at once → deltas of each, how often in a round, rounds."""
    upstream_paced: tuple[int, int, int]
    """Streams, deltas of each, rounds."""
    translated: tuple[int, int]
    """Deltas, rounds."""
    http_clients: tuple[int, int, int]
    """Responses at once, deltas of each, rounds."""
    transports: tuple[int, int, int]
    """Clients of each dialect, deltas of each, rounds."""
    watchers: tuple[int, int]
    """Clients that watch one session, deltas."""
    crowd: tuple[int, int]
    """Turns at once, how often, for the wait for the first delta."""


FULL = Effort(
    name="full", burst={1: (20_000, 9), 16: (1_250, 9), 100: (400, 9), 1_000: (200, 5)},
    turns=(1_000, 5), paced=(500, 100, 3), first_events=(50, 6), open_streams=500, idle_sessions=5_000,
    logged_events=100_000, starts=5, many_sessions=1_000, history=(500, 197), growth=(20, 9),
    turns_before=((1, 100, 1_000), 20), replayed=((1_000, 10_000, 200_000), 3),
    listed=((100, 1_000, 10_000), 15), added=((100, 1_000, 10_000), 20),
    held=((1_000, 5_000, 20_000), (100, 250, 500), (1_000, 3_000, 9_000)), history_tokens=(100_000, 9),
    fleet=(50, 200, 5), traced=(50, 400, 31),
    upstream={1: (200, 20, 5), 32: (200, 3, 5), 100: (200, 1, 5)}, upstream_paced=(500, 100, 1),
    translated=(20_000, 5), http_clients=(64, 100, 5), transports=(40, 60, 3), watchers=(1_000, 40), crowd=(16, 60),
)
QUICK = Effort(
    name="quick", burst={1: (10_000, 3), 100: (200, 3), 1_000: (50, 1)}, turns=(1_000, 3), paced=(500, 80, 1),
    first_events=(30, 3), open_streams=500, idle_sessions=2_000, logged_events=50_000, starts=3, many_sessions=1_000,
    history=(100, 997), growth=(10, 5), turns_before=((1, 100, 1_000), 10),
    replayed=((500, 2_000, 20_000), 3),
    listed=((100, 500, 5_000), 10), added=((20, 200, 2_000), 20),
    held=((1_000, 2_000, 5_000), (50, 100, 200), (500, 1_000, 2_000)), history_tokens=(100_000, 5), fleet=(20, 100, 3),
    traced=(50, 400, 15),
    upstream={1: (200, 10, 3), 32: (200, 1, 3), 100: (200, 1, 3)}, upstream_paced=(500, 80, 1),
    translated=(10_000, 3), http_clients=(32, 60, 3), transports=(20, 40, 2), watchers=(300, 30), crowd=(16, 20),
)
TINY = Effort(
    name="tiny", burst={2: (20, 1)}, turns=(2, 1), paced=(2, 3, 1), first_events=(2, 1), open_streams=2,
    idle_sessions=2, logged_events=50, starts=1, many_sessions=2, history=(2, 20), growth=(2, 1),
    turns_before=((1, 2, 3), 1), replayed=((200, 300, 400), 1),
    listed=((1, 2, 3), 1), added=((1, 2, 3), 1),
    held=((2, 4, 6), (2, 4, 6), (2, 4, 6)), history_tokens=(100, 1), fleet=(2, 10, 1), traced=(2, 10, 1),
    upstream={1: (5, 2, 1), 2: (20, 1, 1)}, upstream_paced=(2, 40, 1), translated=(20, 1),
    http_clients=(2, 5, 1), transports=(2, 5, 1), watchers=(4, 10), crowd=(2, 1),
)


@dataclass(frozen=True)
class Bench:
    """What every scenario works with."""

    effort: Effort
    cores: Cores
    folder: Path
    tell: Callable[[str], None]
    """Shows progress."""
    million: bool = False
    """Whether lists are measured with a million sessions, which take minutes to write."""
    litellm: bool = False
    """Whether LiteLLM's proxy takes part; it is large, and it is slow."""

    def start(self, contender: Contender) -> Server:
        return Server(contender, self.folder, self.cores.server)

    @contextmanager
    def running(self, *contenders: Contender) -> Iterator[Sequence[Server]]:
        """All servers at once; only the one that is being driven has work."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.start(contender)) for contender in contenders]


Measured = TypeVar("Measured")
Scenario = Callable[[Bench], Iterator[Row]]
Samples = Mapping[str, Sequence[float]]
"""Column → the samples, round by round."""


def compared(
    scenario: str, name: str, unit: str, samples: Samples, aim: Aim | None = None, *, share: bool = True,
) -> Row:
    """A row with a figure for each column, and the ratio of the first two."""
    columns = list(samples)
    ratio = paired_ratio(samples[columns[0]], samples[columns[1]]) if share and len(columns) > 1 else None
    return Row(scenario, name, unit, {column: figure(samples[column]) for column in columns}, ratio, aim)


def alternate(servers: Sequence[Server], rounds: int, work: Callable[[Server], Measured]) -> dict[str, list[Measured]]:
    """Every server does the work once in each round; the order alternates."""
    found: dict[str, list[Measured]] = {server.contender.name: [] for server in servers}
    for turn in range(rounds):
        for server in servers if turn % 2 == 0 else reversed(servers):
            found[server.contender.name].append(work(server))
    return found


def client_row(scenario: str, name: str, found: Mapping[str, Sequence[Sample]]) -> Row:
    """How busy the client was; near 100 % the client was measured, not the server."""
    shares = {column: figure([100 * s.round.client_busy for s in samples]) for column, samples in found.items()}
    notes = [note for column, samples in found.items() for note in caveats(column, samples)]
    return Row(scenario, name, "% of core", shares, notes=notes)


def caveats(column: str, samples: Sequence[Sample]) -> Iterator[str]:
    """Reasons why these samples are less reliable than they look."""
    if median(sample.round.client_busy for sample in samples) > BUSY_CLIENT:
        yield f"the load client was the bottleneck against {column}"
    taken = median(sample.spent.waited / sample.round.seconds for sample in samples)
    if taken > DISTURBED:
        yield f"other processes had the core of {column} for {100 * taken:.0f} % of the time"
    taken = median(sample.round.client_kept_off for sample in samples)
    if taken > DISTURBED:
        yield (f"other processes had the client's core for {100 * taken:.0f} % of the time against {column}; "
               "a client that is late makes many small writes cheaper than they are")
