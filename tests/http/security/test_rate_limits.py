"""Buckets fill with time, hold so much, and are forgotten when they are full; addresses of one network are one."""

import pytest

from gateway.http.security import rate_limits
from gateway.http.security.rate_limits import LocalTokenBuckets, _client_network


def test_a_bucket_fills_with_time_up_to_its_size() -> None:
    buckets = LocalTokenBuckets()
    assert [buckets.take("a", 2.0, 3, now) for now in (0.0, 0.0, 0.0, 0.0)] == [0.0, 0.0, 0.0, 0.5]
    assert buckets.take("a", 2.0, 3, 0.25) == pytest.approx(0.25)
    assert buckets.take("a", 2.0, 3, 0.5) == 0.0
    assert buckets.left("a", 2.0, 3, 100.0) == 3
    assert buckets.take("b", 2.0, 3, 0.5) == 0.0


def test_buckets_that_are_full_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MAX_REMEMBERED", 3)
    buckets = LocalTokenBuckets()
    for number, name in enumerate("abcd"):
        buckets.take(name, 0.5, 2, float(number))
    assert len(buckets) == 2
    for name in "fghij":
        buckets.take(name, 0.5, 2, 4.0)
    assert len(buckets) == 3, "of those that are not, the oldest make room"


@pytest.mark.parametrize(("address", "network"), [
    ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
    ("fe80::1%eth0", "fe80::/64"), ("no:address", "no:address"), (None, ""),
])
def test_whoever_has_one_address_of_a_network_has_them_all(address: str | None, network: str) -> None:
    assert _client_network(address) == network
