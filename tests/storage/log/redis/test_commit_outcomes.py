"""Those who wait for records: told when theirs is stored, or why it is not going to be."""

import asyncio

import pytest

from gateway.errors import Overloaded
from gateway.storage.log.redis.commit_outcomes import CommitWaiters


async def test_who_waits_is_told_up_to_what_is_stored() -> None:
    waiting = CommitWaiters()
    early, late = (asyncio.create_task(waiting.wait("s", seq)) for seq in (1, 3))
    await asyncio.sleep(0)
    waiting.resolve("s", 2)
    await early
    assert not late.done()
    waiting.resolve("s", 3)
    await late


async def test_who_waits_in_vain_is_told_why() -> None:
    waiting = CommitWaiters()
    one, two = (asyncio.create_task(waiting.wait(session, 1)) for session in ("a", "b"))
    await asyncio.sleep(0)
    waiting.refuse("a", Overloaded("not a"))
    with pytest.raises(Overloaded, match="not a"):
        await one
    waiting.refuse_all(Overloaded("nobody"))
    with pytest.raises(Overloaded, match="nobody"):
        await two


async def test_who_has_gone_is_not_told() -> None:
    waiting = CommitWaiters()
    gone, there = (asyncio.create_task(waiting.wait("s", 1)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    waiting.resolve("s", 1)
    await there
    assert gone.cancelled() or gone.cancelling()
