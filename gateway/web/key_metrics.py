"""What the keys of each user have and do, for Prometheus. The label `key` is the user, whose keys share limits."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.quotas import HOUSE, Tally

HAS = {
    "turns": "Turns of a key that run.",
    "streams": "Streams of a key that are open.",
    "sessions": "Sessions that a key has.",
    "resources": "Resources that a key keeps, and versions of them.",
    "stored_bytes": "Bytes that a key stores.",
}
MOST = 1000
OTHERS = "(others)"
"""So many keys are told apart; the rest are one."""


class KeyMetrics(Collector):
    """Asks those who know; until somebody says who that is, nobody has anything."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.requests: Callable[[], Mapping[str, int]] = dict
        self.wrong_keys: Callable[[], int] = int
        self._refusals: dict[tuple[str, ...], int] = {}

    def refused(self, owner: str, limit: str) -> None:
        """A key has come to one of its limits."""
        self._refusals[owner, limit] = self._refusals.get((owner, limit), 0) + 1

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("dragoman_key_requests", "Requests of a key.", labels=("key",))
        _fill(requests, {(owner,): number for owner, number in self.requests().items()})
        yield requests
        refusals = CounterMetricFamily(
            "dragoman_key_refusals", "Requests of a key that were refused for a limit.", labels=("key", "limit"))
        _fill(refusals, self._refusals)
        yield refusals
        for name, words in HAS.items():
            gauge = GaugeMetricFamily(f"dragoman_key_{name}", words, labels=("key",))
            kept = self.tally.by_owner.items()
            _fill(gauge, {(owner,): getattr(one, name) for owner, one in kept if owner != HOUSE})
            yield gauge
        yield CounterMetricFamily("dragoman_wrong_keys", "Wrong keys that were shown.", value=self.wrong_keys())


def _fill(family: Any, numbers: Mapping[tuple[str, ...], int]) -> None:
    others: dict[tuple[str, ...], int] = {}
    for place, (labels, number) in enumerate(numbers.items()):
        if place < MOST:
            family.add_metric(labels, number)
        else:
            rest = (OTHERS, *labels[1:])
            others[rest] = others.get(rest, 0) + number
    for labels, number in others.items():
        family.add_metric(labels, number)
