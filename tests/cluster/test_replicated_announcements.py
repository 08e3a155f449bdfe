"""With replicas of Redis to wait for, other servers are told of records when the replicas have them, and not before."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from gateway.storage.redis import Command, RedisConnection, RedisPubSub, RedisUnreachable, Reply
from tests.support.cluster.agents import HELLO, made, quick
from tests.support.cluster.receiver import Receiver
from tests.support.cluster.replicas import Replica, heard, replicas
from tests.support.gateway_server import until

AskAll = Callable[[Sequence[Command]], Awaitable[list[Reply]]]


def with_replicas(one: Replica, have: list[int]) -> None:
    """Redis answers WAIT as if so many replicas had everything."""
    redis = one.redis
    redis.address = replace(redis.address, wait=1)
    for line in (redis._writing, redis._reading):
        assert isinstance(line, RedisConnection)
        line._address = redis.address
        line.ask_all = partial(answered, line.ask_all, have)  # type: ignore[method-assign]


async def answered(ask_all: AskAll, have: list[int], commands: Sequence[Command]) -> list[Reply]:
    if commands and commands[-1][0] == "WAIT":
        return [*await ask_all(commands[:-1]), have[0]]
    return await ask_all(commands)


async def test_who_watches_at_another_server_hears_everything() -> None:
    async with replicas(2, quick) as servers:
        first, second = servers
        for one in servers:
            with_replicas(one, [1])
        session_id = await made(first)
        cursor = await second.sessions.subscribe("ann", session_id, "plain")
        await first.sessions.submit("ann", session_id, [HELLO])
        assert (await heard(cursor, "turn.ended"))[-1].endswith("turn.ended")
        cursor.close()


async def test_what_no_replica_has_is_not_announced() -> None:
    async with replicas(1, quick) as (one,):
        have = [1]
        with_replicas(one, have)
        session_id, receiver = await made(one), Receiver()
        listener = RedisPubSub(one.redis.address, 5, one.redis.clock)
        await listener.start(receiver, one.redis.key("news", session_id))
        have[0] = 0
        said = asyncio.create_task(one.sessions.submit("ann", session_id, [HELLO]))
        stored = one.redis.key("s", session_id), "head"
        await until(lambda: one.redis.trouble is not None)
        assert int(await one.redis._writing.ask("HGET", *stored)) > one.log.stored_head(session_id)
        assert receiver.messages == []
        have[0] = 1
        await asyncio.wait([said])
        await until(lambda: bool(receiver.messages))
        await listener.close()


async def test_what_was_not_announced_is_heard_after_a_beat() -> None:
    async with replicas(2, quick) as servers:
        first, second = servers
        for one in servers:
            with_replicas(one, [1])
        session_id = await made(first)
        cursor = await second.sessions.subscribe("ann", session_id, "plain")

        async def lost(messages: object) -> list[int]:
            raise RedisUnreachable("the connection was lost")

        first.redis.publish_all = lost  # type: ignore[method-assign]
        await first.sessions.submit("ann", session_id, [HELLO])
        assert (await heard(cursor, "turn.ended"))[-1].endswith("turn.ended")
        cursor.close()
