"""Which failures may pass, and how long that is waited for."""

import asyncio

import pytest

from gateway.client import retry
from gateway.client.retry import MAX_RETRY_WAIT, wait_before_retry
from gateway.errors import (
    BackendFailed,
    ConnectionLost,
    GatewayError,
    Overloaded,
    RateLimited,
    ServerUnreachable,
    TimedOut,
)
from gateway.ports.remote import Timeouts


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited = list[float]()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return waited


@pytest.mark.parametrize("kind", [ServerUnreachable, ConnectionLost, RateLimited, Overloaded])
async def test_what_may_pass_is_waited_for_longer_each_time(kind: type[GatewayError], waits: list[float]) -> None:
    for attempt in (1, 2, 3):
        await wait_before_retry(kind("oh"), attempt, 4)
    assert [0.2 <= wait / 2 ** attempt <= 0.4 for attempt, wait in enumerate(waits, 1)] == [True] * 3
    with pytest.raises(kind, match="oh"):
        await wait_before_retry(kind("oh"), 4, 4)


@pytest.mark.parametrize("kind", [BackendFailed, TimedOut])
async def test_what_will_not_pass_is_raised(kind: type[GatewayError], waits: list[float]) -> None:
    with pytest.raises(kind):
        await wait_before_retry(kind("oh"), 1, 4)
    assert waits == []


async def test_a_server_says_how_long_unless_it_is_too_long(waits: list[float]) -> None:
    await wait_before_retry(Overloaded("oh", details={"retry_after": 7}), 1, 2)
    assert waits == [7]
    with pytest.raises(Overloaded):
        await wait_before_retry(Overloaded("oh", details={"retry_after": MAX_RETRY_WAIT + 1}), 1, 2)


def test_somebody_who_says_nothing_has_some() -> None:
    patience = Timeouts()
    assert patience.connect < patience.first_byte <= patience.idle < patience.total and patience.attempts > 1


async def test_a_request_is_repeated_until_it_succeeds() -> None:
    """Time is simulated: the waits take none."""
    failures: list[GatewayError] = [ConnectionLost("broke"), Overloaded("later", details={"retry_after": 5})]
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def request() -> str:
        if failures:
            raise failures.pop(0)
        return "done"

    assert await retry(request, 3) == "done"
    assert 5.4 <= loop.time() - began <= 5.8


@pytest.mark.parametrize(("error", "tries"), [(ConnectionLost("broke"), 3), (BackendFailed("no"), 1)])
async def test_a_request_that_fails_each_time_raises_its_error(error: GatewayError, tries: int) -> None:
    tried = list[int]()

    async def request() -> None:
        tried.append(1)
        raise error

    with pytest.raises(type(error)):
        await retry(request, 3)
    assert len(tried) == tries
