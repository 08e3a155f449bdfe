"""What the server counts about itself, for Prometheus; counting costs next to nothing where events flow.

What the keys of each user have and do, for Prometheus. The label `key` is the user, whose keys share limits.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from gateway.quotas import SYSTEM_OWNER, Quotas

from .security import admins_only

TURN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
LAG_INTERVAL_SECONDS = 0.25
"""Seconds between two measurements of the loop's lag: often enough to see a stall, too seldom to be one."""


class Metrics:
    """The counters of one server; label children are looked up in a dict of our own and bound once."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        space = "dragoman"
        self._sessions = Gauge("sessions", "Sessions that are kept.", (), space, registry=registry)
        self._at_hand = Gauge("sessions_at_hand", "Sessions held in memory.", (), space, registry=registry)
        self._trouble = Gauge("log_trouble", "1 while nothing can be stored, else 0.", (), space, registry=registry)
        self._running = Gauge("running_turns", "Turns that run or wait for people.", (), space, registry=registry)
        Gauge("tasks", "Tasks of the event loop.", (), space, registry=registry).set_function(_tasks)
        self._subscribers = Gauge("subscribers", "Streams that are open.", (), space, registry=registry)
        self._cut = Counter("cut_subscribers", "Streams cut for being too slow.", (), space, registry=registry)
        self._events = Counter("events", "Events handed to clients.", ("dialect",), space, registry=registry)
        self._turns = Counter("turns", "Turns that have ended.", ("outcome",), space, registry=registry)
        self._seconds = Histogram(
            "turn_seconds", "How long turns took.", (), space, registry=registry, buckets=TURN_SECONDS,
        )
        self._lag = Histogram(
            "loop_lag_seconds", "How late the event loop runs what is due.", (), space, registry=registry,
            buckets=LAG_SECONDS,
        )
        self._losses = Counter(
            "translation_loss", "What one dialect says and another cannot.", ("from", "to", "feature"), space,
            registry=registry,
        )
        self.keys = KeyMetrics()
        registry.register(self.keys)
        self._by_dialect: dict[str, Counter] = {}
        self._by_outcome: dict[str, Counter] = {}
        self._by_loss: dict[tuple[str, str, str], Counter] = {}

    # -- where events flow ----------------------------------------------------------------------------------------

    def count_events(self, dialect: str, count: int) -> None:
        """So many events went to one client; call it once per write, not once per event."""
        child = self._by_dialect.get(dialect)
        if child is None:
            child = self._by_dialect[dialect] = self._events.labels(dialect)
        child.inc(count)

    def count_subscribers(self, change: int) -> None:
        """A stream was opened (+1) or closed (-1)."""
        self._subscribers.inc(change)

    def count_cut(self) -> None:
        """A stream was cut for being too slow."""
        self._cut.inc()

    def turn_ended(self, outcome: str, seconds: float) -> None:
        child = self._by_outcome.get(outcome)
        if child is None:
            child = self._by_outcome[outcome] = self._turns.labels(outcome)
        child.inc()
        self._seconds.observe(seconds)

    def count_loss(self, source: str, target: str, feature: str, count: int = 1) -> None:
        """Something said in (or for) one dialect could not be said in another."""
        key = (source, target, feature)
        child = self._by_loss.get(key)
        if child is None:
            child = self._by_loss[key] = self._losses.labels(*key)
        child.inc(count)

    def observe_lag(self, seconds: float) -> None:
        self._lag.observe(max(0.0, seconds))

    # -- what is asked for only when somebody looks ---------------------------------------------------------------

    def ask(
        self, *, sessions: Callable[[], float], running: Callable[[], float],
        at_hand: Callable[[], float] = lambda: 0, trouble: Callable[[], float] = lambda: 0,
    ) -> None:
        """Where to ask how many there are; nothing is counted in between, so nothing can drift."""
        self._sessions.set_function(sessions)
        self._running.set_function(running)
        self._at_hand.set_function(at_hand)
        self._trouble.set_function(trouble)

    def figures(self) -> dict[str, float]:
        """The same as numbers by name; what is counted in pieces has its labels beside the name."""
        return {
            sample.name + "".join(f"{{{word}={value}}}" for word, value in sample.labels.items()): sample.value
            for family in self.registry.collect() for sample in family.samples if not sample.name.endswith("_bucket")
        }

    def render(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # there is no loop where somebody looks from outside
        return 0


class LoopLagMonitor:
    """Measures how late the loop is: one timer that winds itself up again, until it is stopped."""

    def __init__(self, metrics: Metrics, every: float = LAG_INTERVAL_SECONDS) -> None:
        self._metrics = metrics
        self._every = every
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._wind(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wind(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + self._every
        self._timer = loop.call_at(due, self._measure, loop, due)

    def _measure(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._metrics.observe_lag(loop.time() - due)
        self._wind(loop)


def metrics_routes(metrics: Metrics) -> list[web.RouteDef]:
    """`GET /metrics`: figures of all users, so that only admins may read them."""
    @admins_only
    async def show(request: web.Request) -> web.Response:
        return web.Response(body=metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return [web.get("/metrics", show)]


QUOTA_GAUGES = {
    "turns": "Turns of a key that run.",
    "streams": "Streams of a key that are open.",
    "sessions": "Sessions that a key has.",
    "resources": "Resources that a key keeps, and versions of them.",
    "stored_bytes": "Bytes that a key stores.",
}
MAX_KEY_LABELS = 1000
OTHER_KEYS = "(others)"
"""So many keys are told apart; the rest are one."""


class KeyMetrics(Collector):
    """Collects the figures of all keys where they are counted; `ask` says where that is."""

    def __init__(self) -> None:
        self._quotas = Quotas()
        self._requests: Callable[[], Mapping[str, int]] = dict
        self._wrong_keys: Callable[[], int] = int
        self._refusals: dict[tuple[str, ...], int] = {}

    def ask(
        self, quotas: Quotas, *, requests: Callable[[], Mapping[str, int]] = dict, wrong_keys: Callable[[], int] = int,
    ) -> None:
        """Where to ask for the figures; nothing is counted in between, so nothing can drift."""
        self._quotas, self._requests, self._wrong_keys = quotas, requests, wrong_keys

    def count_refusal(self, owner: str, limit: str) -> None:
        """A key has come to one of its limits."""
        self._refusals[owner, limit] = self._refusals.get((owner, limit), 0) + 1

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("dragoman_key_requests", "Requests of a key.", labels=("key",))
        _add_samples(requests, {(owner,): number for owner, number in self._requests().items()})
        yield requests
        refusals = CounterMetricFamily(
            "dragoman_key_refusals", "Requests of a key that were refused for a limit.", labels=("key", "limit"))
        _add_samples(refusals, self._refusals)
        yield refusals
        for name, words in QUOTA_GAUGES.items():
            gauge = GaugeMetricFamily(f"dragoman_key_{name}", words, labels=("key",))
            kept = self._quotas.by_owner.items()
            _add_samples(gauge, {(owner,): getattr(one, name) for owner, one in kept if owner != SYSTEM_OWNER})
            yield gauge
        yield CounterMetricFamily("dragoman_wrong_keys", "Wrong keys that were shown.", value=self._wrong_keys())


def _add_samples(family: Any, numbers: Mapping[tuple[str, ...], int]) -> None:
    others: dict[tuple[str, ...], int] = {}
    for place, (labels, number) in enumerate(numbers.items()):
        if place < MAX_KEY_LABELS:
            family.add_metric(labels, number)
        else:
            rest = (OTHER_KEYS, *labels[1:])
            others[rest] = others.get(rest, 0) + number
    for labels, number in others.items():
        family.add_metric(labels, number)
