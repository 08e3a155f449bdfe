"""Counts what the server does and has, for Prometheus; where events flow, a count is one look-up and one addition."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from gateway.errors import GatewayError
from gateway.quotas import SYSTEM_OWNER, LimitRefusals, Quotas

from .answers import Answers
from .security import RateLimiter, WrongKeyLimiter, admins_only

TURN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
LAG_INTERVAL_SECONDS = 0.25
"""Seconds between two measurements of the event loop's lag."""


class NewMetric(NamedTuple):
    """The new name of a metric, and the first release that does not export the old one."""

    name: str
    removed_in: str


DEPRECATED_METRICS = {
    "dragoman_sessions_at_hand": NewMetric("dragoman_cached_sessions", "0.3.0"),
    "dragoman_log_trouble": NewMetric("dragoman_log_write_failing", "0.3.0"),
}
"""By old name. Both names are exported until then; docs/upgrading.md lists them."""


class Metrics:
    """The counters of one server; the children of labels are kept in dicts, so that none is looked up twice."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        space = "dragoman"
        Gauge("tasks", "Tasks of the event loop.", (), space, registry=registry).set_function(_tasks)
        self._subscribers = Gauge("subscribers", "Open streams.", (), space, registry=registry)
        self._cut = Counter("cut_subscribers", "Streams cut because the client was too slow.", (), space,
                            registry=registry)
        self._events = Counter("events", "Events sent to clients.", ("dialect",), space, registry=registry)
        self._turns = Counter("turns", "Turns that have ended.", ("outcome",), space, registry=registry)
        self._seconds = Histogram(
            "turn_seconds", "Duration of turns.", (), space, registry=registry, buckets=TURN_SECONDS,
        )
        self._lag = Histogram(
            "loop_lag_seconds", "Delay of timers of the event loop.", (), space, registry=registry,
            buckets=LAG_SECONDS,
        )
        self._losses = Counter(
            "translation_loss", "Features that the target dialect cannot express.", ("from", "to", "feature"), space,
            registry=registry,
        )
        self._by_dialect: dict[str, Counter] = {}
        self._by_outcome: dict[str, Counter] = {}
        self._by_loss: dict[tuple[str, str, str], Counter] = {}

    def register(self, collector: Collector) -> None:
        """Export what the collector finds whenever somebody reads the metrics."""
        self.registry.register(collector)

    # -- where events flow ----------------------------------------------------------------------------------------

    def count_events(self, dialect: str, count: int) -> None:
        """Count events that one client was sent; call it once per write, not once per event."""
        child = self._by_dialect.get(dialect)
        if child is None:
            child = self._by_dialect[dialect] = self._events.labels(dialect)
        child.inc(count)

    def count_subscribers(self, change: int) -> None:
        """Count a stream that was opened (+1) or closed (-1)."""
        self._subscribers.inc(change)

    def count_cut(self) -> None:
        """Count a stream that was cut because its client was too slow."""
        self._cut.inc()

    def turn_ended(self, outcome: str, seconds: float) -> None:
        child = self._by_outcome.get(outcome)
        if child is None:
            child = self._by_outcome[outcome] = self._turns.labels(outcome)
        child.inc()
        self._seconds.observe(seconds)

    def count_loss(self, source: str, target: str, feature: str, count: int = 1) -> None:
        """Count uses of a feature of the source that the target dialect cannot express."""
        key = (source, target, feature)
        child = self._by_loss.get(key)
        if child is None:
            child = self._by_loss[key] = self._losses.labels(*key)
        child.inc(count)

    def observe_lag(self, seconds: float) -> None:
        self._lag.observe(max(0.0, seconds))

    # -- reading --------------------------------------------------------------------------------------------------

    def figures(self) -> dict[str, float]:
        """Return all metrics as numbers by name; the labels of a metric are part of its name, buckets are left out."""
        return {
            sample.name + "".join(f"{{{word}={value}}}" for word, value in sample.labels.items()): sample.value
            for family in self.registry.collect() for sample in family.samples if not sample.name.endswith("_bucket")
        }

    def render(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # the reader runs outside of an event loop
        return 0


class LoopLagMonitor:
    """Measures how late the event loop runs a timer, again and again until it is stopped."""

    def __init__(self, metrics: Metrics, every: float = LAG_INTERVAL_SECONDS) -> None:
        self._metrics = metrics
        self._every = every
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._schedule(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + self._every
        self._timer = loop.call_at(due, self._measure, loop, due)

    def _measure(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._metrics.observe_lag(loop.time() - due)
        self._schedule(loop)


MetricsPage = Callable[[], Awaitable[bytes]]
"""Renders the metrics of all processes that serve the port."""


def metrics_routes(metrics: Metrics, page: MetricsPage | None = None) -> list[web.RouteDef]:
    """Return the route of `GET /metrics`; the numbers are about all users, so only admins may read them."""
    @admins_only
    @Answers(str, media_type="text/plain")
    async def show(request: web.Request) -> web.Response:
        body = await page() if page else metrics.render()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    return [web.get("/metrics", show)]


class CountedSessions(Protocol):
    """The sessions in memory."""

    def __len__(self) -> int: ...
    @property
    def turn_count(self) -> int: ...


class WrittenLog(Protocol):
    """The event log, which knows how many sessions it has and whether it can be written."""

    @property
    def session_count(self) -> int: ...
    @property
    def write_error(self) -> GatewayError | None: ...


class SessionMetrics(Collector):
    """Asks the table of sessions and the log for their numbers whenever the metrics are read."""

    def __init__(self, sessions: CountedSessions, log: WrittenLog, max_sessions: Callable[[], int]) -> None:
        self._sessions, self._log, self._max_sessions = sessions, log, max_sessions

    def collect(self) -> Iterator[Metric]:
        gauges = {
            "dragoman_sessions": ("Stored sessions.", self._log.session_count),
            "dragoman_max_sessions": ("How many sessions may be stored.", self._max_sessions()),
            "dragoman_cached_sessions": ("Sessions held in memory.", len(self._sessions)),
            "dragoman_running_turns": ("Turns that run or wait for people.", self._sessions.turn_count),
            "dragoman_log_write_failing": ("1 while nothing can be stored, else 0.", self._log.write_error is not None),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value=value)
        for old, (new, removed_in) in DEPRECATED_METRICS.items():
            yield GaugeMetricFamily(old, f"Old name of {new}, to be removed in {removed_in}.", value=gauges[new][1])


QUOTA_GAUGES = {
    "turns": "Running turns of a key.",
    "streams": "Open streams of a key.",
    "sessions": "Stored sessions of a key.",
    "resources": "Stored resources of a key, and versions of them.",
    "stored_bytes": "Bytes that a key stores.",
}
MAX_KEY_LABELS = 1000
OTHER_KEYS = "(others)"
"""The label of all keys beyond MAX_KEY_LABELS."""


class KeyMetrics(Collector):
    """Asks limiters and quotas for the numbers of each user. The label `key` is the user, whose keys share limits."""

    def __init__(
        self, refusals: LimitRefusals, quotas: Quotas, rate_limiter: RateLimiter, wrong_keys: WrongKeyLimiter
    ) -> None:
        self._refusals, self._quotas = refusals, quotas
        self._rate_limiter, self._wrong_keys = rate_limiter, wrong_keys

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("dragoman_key_requests", "Requests of a key.", labels=("key",))
        _add_samples(requests, {(owner,): number for owner, number in self._rate_limiter.requests.items()})
        yield requests
        refusals = CounterMetricFamily(
            "dragoman_key_refusals", "Requests of a key that a limit refused.", labels=("key", "limit"))
        _add_samples(refusals, self._refusals.counts)
        yield refusals
        for name, text in QUOTA_GAUGES.items():
            gauge = GaugeMetricFamily(f"dragoman_key_{name}", text, labels=("key",))
            usage = self._quotas.by_owner.items()
            _add_samples(gauge, {(owner,): getattr(one, name) for owner, one in usage if owner != SYSTEM_OWNER})
            yield gauge
        yield CounterMetricFamily("dragoman_wrong_keys", "Wrong keys that clients sent.", value=self._wrong_keys.count)


def _add_samples(family: CounterMetricFamily | GaugeMetricFamily, numbers: Mapping[tuple[str, ...], int]) -> None:
    others: dict[tuple[str, ...], int] = {}
    for place, (labels, number) in enumerate(numbers.items()):
        if place < MAX_KEY_LABELS:
            family.add_metric(labels, number)
        else:
            rest = (OTHER_KEYS, *labels[1:])
            others[rest] = others.get(rest, 0) + number
    for labels, number in others.items():
        family.add_metric(labels, number)
