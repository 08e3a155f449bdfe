"""Keys are told apart by name, up to a number; the house itself is no key."""

import pytest

from gateway.http import metrics as key_metrics
from gateway.http.metrics import OTHER_KEYS, KeyMetrics
from gateway.quotas import SYSTEM_OWNER, Quotas


def told(metrics: KeyMetrics, name: str) -> dict[tuple[str, ...], float]:
    [family] = (one for one in metrics.collect() if one.name == f"dragoman_{name}")
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def test_what_a_key_has_and_was_refused_is_told_by_its_name() -> None:
    metrics, quotas = KeyMetrics(), Quotas()
    metrics.ask(quotas)
    quotas.add("ann", turns=2, stored_bytes=100)
    quotas.add(SYSTEM_OWNER, resources=7)
    metrics.count_refusal("ann", "turns")
    metrics.count_refusal("ann", "turns")
    assert told(metrics, "key_turns") == {("ann",): 2}
    assert told(metrics, "key_stored_bytes") == {("ann",): 100}
    assert told(metrics, "key_refusals") == {("ann", "turns"): 2}


def test_keys_beyond_a_number_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_metrics, "MAX_KEY_LABELS", 1)
    metrics = KeyMetrics()
    metrics.ask(Quotas(), requests=lambda: {"ann": 1, "bob": 2, "cleo": 3})
    assert told(metrics, "key_requests") == {("ann",): 1, (OTHER_KEYS,): 5}
