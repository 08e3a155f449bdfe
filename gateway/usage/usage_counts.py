"""Counts uses in memory, and adds them to the store every few seconds; no request waits for that or has a task."""

import asyncio
from collections.abc import Iterator

import structlog
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.errors import GatewayError
from gateway.ports import Clock

from .usage_store import UsageRow, UsageStore, Use

log = structlog.get_logger("dragoman.usage")

ENDPOINT, FEATURE = "endpoint", "feature"
OTHERS = "(others)"
"""The client, and its key, of all clients beyond MAX_CLIENTS; and the name of all endpoints beyond MAX_NAMES."""
MAX_CLIENTS = 300
"""How many clients of all dialects are told apart."""
MAX_NAMES = 200
"""How many endpoints and features of one client are told apart."""
STORE_SECONDS = 5.0
"""Seconds between the first use that is not stored yet and its storing: a killed server loses so many."""


class UsageCounts:
    """The counts since the start of the server, and those that are not stored yet."""

    def __init__(self, store: UsageStore, clock: Clock, every: float = STORE_SECONDS) -> None:
        self.totals: dict[Use, int] = {}
        self._unsaved: dict[Use, int] = {}
        self._names: dict[tuple[str, str, str], int] = {}
        self._store, self._clock, self._every = store, clock, every
        self._timer: asyncio.TimerHandle | None = None
        self._storing: asyncio.Task[None] | None = None
        self._is_failing = False

    def count(self, dialect: str, key: str, client: str, kind: str, name: str) -> None:
        """Count one use; a client or a name beyond the caps is counted among the others."""
        use = Use(dialect, key, client, kind, name)
        if use not in self.totals:
            use = self._within_caps(use)
        self.totals[use] = self.totals.get(use, 0) + 1
        self._unsaved[use] = self._unsaved.get(use, 0) + 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every, self._begin)

    def _within_caps(self, use: Use) -> Use:
        if use[:3] not in self._names and len(self._names) >= MAX_CLIENTS:
            use = use._replace(key=OTHERS, client=OTHERS)
        names = self._names.get(use[:3], 0)
        if use in self.totals:
            return use
        if names >= MAX_NAMES:
            return use._replace(name=OTHERS)
        self._names[use[:3]] = names + 1
        return use

    def _begin(self) -> None:
        self._timer = None
        if self._storing is None:
            self._storing = asyncio.get_running_loop().create_task(self._save(), name="usage")
            self._storing.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._storing = None
        if self._unsaved and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every, self._begin)

    async def _save(self) -> None:
        """Add the counts to the store; if the store fails, they are counted again the next time."""
        counted, self._unsaved = self._unsaved, {}
        try:
            await self._store.add(counted, self._clock())
        except GatewayError as error:
            for use, number in counted.items():
                self._unsaved[use] = self._unsaved.get(use, 0) + number
            if not self._is_failing:
                log.warning("usage_not_stored", error=error.message)
            self._is_failing = True
        else:
            self._is_failing = False

    async def flush(self) -> None:
        """Store what is not stored yet."""
        if self._storing is not None:
            await asyncio.wait([self._storing])
        if self._unsaved:
            await self._save()

    async def rows(self, since: float) -> list[UsageRow]:
        """What all servers of the log have counted since then, and this one until now."""
        await self.flush()
        return await self._store.since(since)

    async def close(self) -> None:
        await self.flush()
        if self._timer is not None:
            self._timer.cancel()


class UsageMetrics(Collector):
    """The counts of this server since its start, for Prometheus."""

    def __init__(self, counts: UsageCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        labels = ("dialect", "key", "client")
        requests: dict[tuple[str, ...], int] = {}
        endpoints: dict[tuple[str, ...], int] = {}
        features: dict[tuple[str, ...], int] = {}
        for use, number in list(self._counts.totals.items()):
            if use.kind == FEATURE:
                features[*use[:3], use.name] = number
                continue
            requests[use[:3]] = requests.get(use[:3], 0) + number
            endpoints[use.dialect, use.name] = endpoints.get((use.dialect, use.name), 0) + number
        yield _family("dragoman_client_requests", "Requests of a client.", labels, requests)
        yield _family("dragoman_client_features", "Uses of a documented feature by a client.", (*labels, "feature"),
                      features)
        yield _family("dragoman_endpoint_requests", "Requests to an endpoint.", ("dialect", "endpoint"), endpoints)


def _family(
    name: str, text: str, labels: tuple[str, ...], numbers: dict[tuple[str, ...], int]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in numbers.items():
        family.add_metric(values, number)
    return family
