"""Which failures may pass, and how long that is waited for."""

import asyncio

import pytest

from gateway.errors import BackendFailed, GatewayError, Overloaded, RateLimited, TimedOut
from gateway.upstream import LONGEST_WAIT, Cut, Patience, Unreachable
from gateway.upstream.patience import wait_or_raise


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited = list[float]()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return waited


@pytest.mark.parametrize("kind", [Unreachable, Cut, RateLimited, Overloaded])
async def test_what_may_pass_is_waited_for_longer_each_time(kind: type[GatewayError], waits: list[float]) -> None:
    for attempt in (1, 2, 3):
        await wait_or_raise(kind("oh"), attempt, 4)
    assert [0.2 <= wait / 2 ** attempt <= 0.4 for attempt, wait in enumerate(waits, 1)] == [True] * 3
    with pytest.raises(kind, match="oh"):
        await wait_or_raise(kind("oh"), 4, 4)


@pytest.mark.parametrize("kind", [BackendFailed, TimedOut])
async def test_what_will_not_pass_is_raised(kind: type[GatewayError], waits: list[float]) -> None:
    with pytest.raises(kind):
        await wait_or_raise(kind("oh"), 1, 4)
    assert waits == []


async def test_a_server_says_how_long_unless_it_is_too_long(waits: list[float]) -> None:
    await wait_or_raise(Overloaded("oh", details={"retry_after": 7}), 1, 2)
    assert waits == [7]
    with pytest.raises(Overloaded):
        await wait_or_raise(Overloaded("oh", details={"retry_after": LONGEST_WAIT + 1}), 1, 2)


def test_somebody_who_says_nothing_has_some() -> None:
    patience = Patience()
    assert patience.connect < patience.first_byte <= patience.idle < patience.total and patience.attempts > 1
