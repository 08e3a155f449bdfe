"""Keys are told apart by name, up to a number; the house itself is no key."""

import pytest

from gateway.http import metrics as key_metrics
from gateway.http.metrics import OTHER_KEYS, KeyMetrics
from gateway.http.security import RateLimiter, WrongKeyLimiter
from gateway.quotas import SYSTEM_OWNER, LimitRefusals, NoLimits, Quotas


def told(metrics: KeyMetrics, name: str) -> dict[tuple[str, ...], float]:
    [family] = (one for one in metrics.collect() if one.name == f"dragoman_{name}")
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


class Unbounded(NoLimits):
    requests_per_second = None
    request_burst = 1


class Counted:
    """The objects that are asked, and the metrics that ask them."""

    def __init__(self) -> None:
        self.refusals, self.wrong_keys = LimitRefusals(), WrongKeyLimiter(lambda: 20)
        self.quotas = Quotas(refusals=self.refusals)
        self.rate_limiter = RateLimiter(Unbounded, self.wrong_keys, refusals=self.refusals)
        self.metrics = KeyMetrics(self.refusals, self.quotas, self.rate_limiter, self.wrong_keys)


def test_what_a_key_has_and_was_refused_is_told_by_its_name() -> None:
    counted = Counted()
    metrics = counted.metrics
    counted.quotas.add("ann", turns=2, stored_bytes=100)
    counted.quotas.add(SYSTEM_OWNER, resources=7)
    counted.refusals.count("ann", "turns")
    counted.refusals.count("ann", "turns")
    assert told(metrics, "key_turns") == {("ann",): 2}
    assert told(metrics, "key_stored_bytes") == {("ann",): 100}
    assert told(metrics, "key_refusals") == {("ann", "turns"): 2}


def test_keys_beyond_a_number_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_metrics, "MAX_KEY_LABELS", 1)
    counted = Counted()
    counted.rate_limiter.requests = {"ann": 1, "bob": 2, "cleo": 3}
    assert told(counted.metrics, "key_requests") == {("ann",): 1, (OTHER_KEYS,): 5}
