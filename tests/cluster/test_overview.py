"""What an operator sees of several servers, and how he asks one of them to drain."""

import asyncio
from uuid import uuid4

import pytest

from gateway.cluster import ClusterView, ask_to_drain, find_replica, read_cluster
from gateway.errors import NotFound
from gateway.storage.redis import RedisAddress, RedisClient
from tests.support.cluster.agents import HELLO, endless, made
from tests.support.cluster.replicas import LEASE, Replica, replicas
from tests.support.gateway_server import until
from tests.support.redis_server import redis_of_this_run


async def seen(one: Replica) -> ClusterView:
    """What is known after every server has renewed its lease."""
    await asyncio.sleep(LEASE / 2)
    return await read_cluster(one.redis)


async def test_every_server_is_shown_with_what_it_holds() -> None:
    async with replicas(2, endless) as (first, second):
        first.redis.name, first.redis.failovers = "one:1", 3
        sessions = [await made(first), await made(first), await made(second)]
        await first.sessions.submit("ann", sessions[0], [HELLO])
        cursor = await second.sessions.subscribe("ann", sessions[0], "plain")
        view = await seen(second)
        by_id = {one.id: one for one in view.replicas}
        one, other = by_id[first.redis.replica], by_id[second.redis.replica]
        assert (view.sessions, view.open_turns) == (3, 1)
        assert (one.leads, other.leads) == (True, False)
        assert (one.report.name, one.report.failovers, one.report.sessions, one.report.turns) == ("one:1", 3, 2, 1)
        assert (other.report.sessions, other.report.turns, other.report.streams) == (1, 0, 1)
        assert one.lives and other.lives
        assert (one.open_turns, other.open_turns) == (1, 0)
        cursor.close()


async def test_a_dead_server_is_shown_with_its_turns_and_one_of_an_older_release_without_numbers() -> None:
    async with replicas(1, endless) as (one,):
        await one.redis._writing.ask("SADD", one.redis.key("replicas"), "dead", "old")
        await one.redis._writing.ask("SADD", one.redis.key("open", "dead"), "s1", "s2")
        await one.redis._writing.ask("SET", one.redis.key("replica", "old"), "1", "PX", 60_000)
        by_id = {found.id: found for found in (await read_cluster(one.redis)).replicas}
        assert (by_id["dead"].lives, by_id["dead"].open_turns) == (False, 2)
        assert (by_id["old"].lives, by_id["old"].report.name) == (True, "")


async def test_a_server_that_is_asked_to_drain_stops_and_the_others_do_not() -> None:
    async with replicas(2, endless) as (first, second):
        await ask_to_drain(second.redis, first.redis.replica)
        [asked] = [one.is_to_drain for one in (await read_cluster(second.redis)).replicas if one.is_to_drain]
        assert asked
        await until(lambda: first.stops > 0)
        assert second.stops == 0


async def test_who_does_not_live_is_not_asked() -> None:
    async with replicas(1, endless) as (one,):
        with pytest.raises(NotFound, match="the server nobody has just gone"):
            await ask_to_drain(one.redis, "nobody")


async def test_a_server_is_found_by_its_name_or_by_how_its_id_begins() -> None:
    async with replicas(2, endless) as (first, second):
        first.redis.name, second.redis.name = "one:1", "two:1"
        view = await seen(first)
        assert find_replica(view, "two:1").id == second.redis.replica
        assert find_replica(view, first.redis.replica[:-2]).id == first.redis.replica
        for wrong in ("three:1", ""):
            with pytest.raises(NotFound, match="there is no living server"):
                find_replica(view, wrong)


async def test_where_nothing_is_stored_there_is_no_cluster_and_none_begins() -> None:
    redis = RedisClient(RedisAddress.read(f"{redis_of_this_run().url}?prefix={uuid4().hex}"))
    with pytest.raises(NotFound, match="has no data of Dragoman"):
        await read_cluster(redis)
    assert await redis.read_all([("EXISTS", redis.key("epoch"))]) == [0]
    await redis.close()
