"""Who watches a session that another server holds is told all of it, whatever came between."""

import asyncio
from typing import Any

import gateway.model as m
from gateway.storage.redis import RedisUnreachable
from tests.support.cluster.agents import made, quick
from tests.support.cluster.replicas import LEASE, heard, replicas
from tests.support.gateway_server import until


async def test_what_is_said_while_a_gap_is_filled_is_not_missed() -> None:
    """The log was read before it was said; and it is heard before what was read is told."""
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        cursor = await second.sessions.subscribe("ann", session_id, "d")
        await heard(cursor, "session.created")
        inbox, since, news = second.sessions.inbox, second.log.since, list[bytes]()
        hear, read, told = inbox.received, asyncio.Event(), asyncio.Event()

        def deaf_at_first(channel: str, message: bytes) -> None:
            news.append(message)
            if len(news) > 1:
                hear(channel, message)

        async def slow(session_id: str, after: int) -> Any:
            records = await since(session_id, after)
            read.set()
            await told.wait()
            return records

        inbox.received, second.log.since = deaf_at_first, slow  # type: ignore[method-assign]
        for title in ("missed", "after a gap"):
            await first.sessions.post_event("ann", session_id, m.NoticePosted(topic="t", title=title))
        await read.wait()
        await first.sessions.post_event("ann", session_id, m.NoticePosted(topic="t", title="meanwhile"))
        await until(lambda: len(news) == 3)
        told.set()
        assert await heard(cursor, "4 notice.posted") == [f"{n} notice.posted" for n in (2, 3, 4)]
        cursor.close()


async def test_who_watches_is_not_cut_because_the_server_slept() -> None:
    """Whatever it had asked of Redis when it fell asleep has come to nothing when it wakes, and that is all."""
    async with replicas(2, quick) as (first, second):
        session_id = await made(second)
        cursor = await first.sessions.subscribe("ann", session_id, "d")
        await heard(cursor, "session.created")
        await first.freeze()
        await asyncio.sleep(3 * LEASE)
        change, missed = first.redis.run_script, list[str]()

        async def breaking(script: str, *given: Any) -> Any:
            if script == "beat" and not missed:
                missed.append(script)
                raise RedisUnreachable("it does not answer")
            return await change(script, *given)

        first.redis.run_script = breaking  # type: ignore[method-assign]
        first.sessions.heartbeat.start()
        await until(lambda: missed)
        await first.sessions._pubsub.start(first.sessions.inbox, first.sessions.inbox.addresses[0])
        await second.sessions.post_event("ann", session_id, m.NoticePosted(topic="t", title="awake"))
        assert await heard(cursor, "2 notice.posted") == ["2 notice.posted"]
        cursor.close()


async def test_who_watches_is_cut_when_redis_has_been_away_for_long() -> None:
    async with replicas(1, quick) as (first,):
        session_id = await made(first)
        cursor = await first.sessions.subscribe("ann", session_id, "d")
        await heard(cursor, "session.created")
        change = first.redis.run_script

        async def gone(script: str, *given: Any) -> Any:
            raise RedisUnreachable("it does not answer")

        first.redis.run_script = gone  # type: ignore[method-assign]
        async with asyncio.timeout(30):
            while await cursor.chunks():
                pass
        assert cursor.cut_at is not None
        first.redis.run_script = change  # type: ignore[method-assign]
        cursor.close()
