"""A lease is good while it is renewed; who may have lost it finds out before anything else."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from gateway.cluster.membership import Heartbeat, Leases
from gateway.storage.redis import RedisAddress, RedisClient, RedisUnreachable
from tests.support.cluster.replicas import LEASE
from tests.support.gateway_server import simulation
from tests.support.redis_server import redis_of_this_run


class Member:
    """A member of a cluster, and what it told."""

    def __init__(self, prefix: str) -> None:
        address = RedisAddress.read(f"{redis_of_this_run().url}?prefix={prefix}")
        self.redis = RedisClient(address, lease=LEASE, clock=simulation().time)
        self.doubts = self.beats = self.misses = 0
        leases = Leases(self.redis, self.doubted)
        self.lease = leases.first
        self.heartbeat = Heartbeat(leases, self.beaten, self.missed)

    async def doubted(self, part: RedisClient) -> None:
        self.doubts += 1

    async def beaten(self) -> None:
        self.beats += 1

    def missed(self) -> None:
        self.misses += 1


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Member, Member]]:
    prefix = uuid4().hex
    first, second = Member(prefix), Member(prefix)
    await first.redis.open()
    await second.redis.open()
    yield first, second
    for one in (first, second):
        await one.heartbeat.stop()
        await one.lease.end()
        await one.redis.close()


async def test_a_lease_runs_out_and_is_looked_into_when_it_is_needed(pair: tuple[Member, Member]) -> None:
    member = pair[0].lease
    assert not member.is_good
    await member.ensure_good()
    assert (member.is_good, pair[0].doubts) == (True, 1)
    await member.ensure_good()
    assert pair[0].doubts == 1
    await asyncio.sleep(1.2 * LEASE)
    assert not member.is_good and member.silence == 0
    await asyncio.gather(*(member.ensure_good() for _ in range(5)))
    assert (member.is_good, pair[0].doubts) == (True, 2)


async def test_a_lease_that_is_renewed_in_time_is_not_in_doubt(pair: tuple[Member, Member]) -> None:
    member = pair[0].lease
    await member.renew()
    pair[0].heartbeat.start()
    await asyncio.sleep(2.5 * LEASE)
    assert member.is_good and member.is_steady
    assert pair[0].doubts == 1
    assert pair[0].beats == 7


async def test_one_leads_until_it_leaves(pair: tuple[Member, Member]) -> None:
    first, second = pair[0].lease, pair[1].lease
    await first.renew()
    await second.renew()
    assert (first.is_leader, second.is_leader) == (True, False)
    await first.end()
    await second.renew()
    assert (first.is_leader, second.is_leader) == (False, True)


async def test_one_that_is_silent_leads_no_more(pair: tuple[Member, Member]) -> None:
    first, second = pair[0].lease, pair[1].lease
    await first.renew()
    await asyncio.sleep(1.2 * LEASE)
    assert not first.is_leader
    await second.renew()
    assert second.is_leader
    await first.renew()
    assert not first.is_leader


async def test_beats_that_come_to_nothing_are_told(pair: tuple[Member, Member]) -> None:
    member = pair[0]
    await member.lease.renew()

    async def gone(script: str, *given: object) -> object:
        raise RedisUnreachable("gone")

    change, member.redis.run_script = member.redis.run_script, gone  # type: ignore[method-assign, assignment]
    member.heartbeat.start()
    await asyncio.sleep(LEASE)
    assert member.misses == 2 and member.redis.trouble is not None and member.lease.silence > 0
    member.redis.run_script = change  # type: ignore[method-assign]
    await asyncio.sleep(LEASE)
    assert member.redis.trouble is None and member.lease.is_good and member.lease.silence == 0
