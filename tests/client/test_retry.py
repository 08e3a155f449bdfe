"""Which failures may pass, and how long that is waited for."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.client import Reconnector, ResumableStream, retry
from gateway.client.retry import GOOD_CONNECTION_SECONDS, MAX_RECONNECT_WAIT, MAX_RETRY_WAIT, wait_before_retry
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
from tests.simulation import simulated


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


Connection = Sequence[int | float | GatewayError]
"""What happens on one connection: an item, a wait of so many seconds, or a failure."""
LOST = ConnectionLost("broke")


class Numbers:
    """Counts on, on one connection after the other; its cursor is the last number."""

    def __init__(self, *connections: Connection) -> None:
        self.cursor = 0
        self.connected_at: list[float] = []
        self.is_connected = False
        self._left = list(connections)
        self._now: list[int | float | GatewayError] = []

    async def connect(self) -> None:
        assert not self.is_connected
        self.connected_at.append(asyncio.get_running_loop().time())
        self._now = list(self._left.pop(0))
        if self._now and isinstance(self._now[0], ServerUnreachable):
            raise self._now[0]
        self.is_connected = True

    async def receive(self) -> int:
        assert self.is_connected
        while self._now:
            match self._now.pop(0):
                case int(number):
                    self.cursor = max(self.cursor, number)
                    return number
                case float(seconds):
                    await asyncio.sleep(seconds)
                case GatewayError() as error:
                    raise error
        raise LOST

    async def disconnect(self) -> None:
        self.is_connected = False

    async def check_resumable(self, error: GatewayError) -> None:
        assert not self.is_connected, "a broken connection is closed first"
        if not isinstance(error, ConnectionLost | ServerUnreachable | Overloaded):
            raise error

    @property
    def waits(self) -> list[float]:
        return [round(later - at, 3) for at, later in zip(self.connected_at, self.connected_at[1:], strict=False)]


async def read(stream: ResumableStream[int], items: int, attempts: int = 3) -> list[int]:
    reconnector = Reconnector(attempts)
    return [await reconnector.read(stream) for _ in range(items)]


async def test_a_stream_is_resumed_at_once_where_it_was_left() -> None:
    numbers = Numbers([1, 2], [3], [4, 5])
    assert await read(numbers, 5) == [1, 2, 3, 4, 5]
    assert numbers.waits == [0, 0]


async def test_connections_without_progress_come_later_and_later() -> None:
    numbers = Numbers([1], *([[]] * 9), [2])
    assert await read(numbers, 2, attempts=10) == [1, 2]
    first, *waits = numbers.waits
    assert first == 0
    assert all(min(0.2 * 2 ** n, MAX_RECONNECT_WAIT) <= wait <= MAX_RECONNECT_WAIT for n, wait in enumerate(waits))
    assert waits[-1] == MAX_RECONNECT_WAIT


@pytest.mark.parametrize("connections", [
    [[1], [], [], []], [[], [], []], [[1], [2], [2], [2], [2]], [[1], [LOST], [], [LOST]],
    [[1], [ServerUnreachable("it broke")], [], []],
], ids=["nothing more", "nothing at all", "the same again", "broken", "unreachable"])
async def test_so_many_connections_in_a_row_without_progress_are_the_last(connections: list[Connection]) -> None:
    numbers = Numbers(*connections, [9])
    with pytest.raises(ConnectionLost, match="broke"):
        await read(numbers, 10)
    assert len(numbers.connected_at) == len(connections)


async def test_a_connection_that_lasted_was_a_good_one() -> None:
    numbers = Numbers(*([[GOOD_CONNECTION_SECONDS + 1]] * 20), [1])
    assert await read(numbers, 1) == [1]
    assert set(numbers.waits) == {GOOD_CONNECTION_SECONDS + 1}
    for short in ([GOOD_CONNECTION_SECONDS - 1], [GOOD_CONNECTION_SECONDS + 1, Overloaded("busy")]):
        with pytest.raises(GatewayError):
            await read(Numbers(*([short] * 3), [1]), 1)


async def test_a_server_says_how_long_to_wait() -> None:
    polite = ConnectionLost("restarting")
    polite.retry_after = 3.0
    numbers = Numbers([1, polite], [Overloaded("busy", details={"retry_after": 7})], [2])
    assert await read(numbers, 2) == [1, 2]
    assert numbers.waits == [3, 7]
    with pytest.raises(Overloaded):
        await read(Numbers([Overloaded("busy", details={"retry_after": MAX_RETRY_WAIT + 1})], [1]), 1)


async def test_what_cannot_be_resumed_is_raised_at_once() -> None:
    numbers = Numbers([1, BackendFailed("nonsense")], [2])
    with pytest.raises(BackendFailed, match="nonsense"):
        await read(numbers, 2)
    assert len(numbers.connected_at) == 1
    assert not numbers.is_connected


async def test_other_exceptions_leave_the_connection_open() -> None:
    class Impatient(Numbers):
        async def receive(self) -> int:
            if self.cursor == 1:
                self.cursor = 0
                raise TimeoutError
            return await super().receive()

    numbers, reconnector = Impatient([1, 2]), Reconnector(3)
    assert await reconnector.read(numbers) == 1
    with pytest.raises(TimeoutError):
        await reconnector.read(numbers)
    assert numbers.is_connected
    assert await reconnector.read(numbers) == 2


@given(st.lists(st.lists(st.integers(1, 9), max_size=3), max_size=12), st.integers(1, 4))
def test_it_ends_exactly_when_so_many_in_a_row_bring_nothing_new(brought: list[list[int]], attempts: int) -> None:
    async def used() -> int:
        numbers = Numbers(*brought, *([[]] * attempts))
        with pytest.raises(ConnectionLost):
            await read(numbers, 100, attempts)
        return len(numbers.connected_at)

    assert simulated(used()) == expected(brought, attempts)


def expected(brought: list[list[int]], attempts: int) -> int:
    highest = failures = 0
    for count, numbers in enumerate([*brought, *([[]] * attempts)], 1):
        failures = 0 if max(numbers, default=0) > highest else failures + 1
        highest = max([highest, *numbers])
        if failures == attempts:
            return count
    raise AssertionError("the last connections bring nothing")
