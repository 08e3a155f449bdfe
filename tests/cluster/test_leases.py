"""A session that was claimed has a writer, whatever became of the claim; nobody waits for what was dropped."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import gateway.model as m
from gateway.errors import NotFound
from gateway.ports import BackendEvent, Turn
from gateway.storage.redis import RedisUnreachable
from tests.support.cluster.agents import HELLO, asking, ended, endless, made, quick
from tests.support.cluster.replicas import LEASE, Replica, replicas
from tests.support.engine.engine_fixture import lawful
from tests.support.gateway_server import until

SHORTENED = """
local id = ARGV[2]
local first = redis.call('XRANGE', ARGV[1] .. 'log:' .. id, '-', '+', 'COUNT', 2)
redis.call('DEL', ARGV[1] .. 'log:' .. id)
for _, entry in ipairs(first) do redis.call('XADD', ARGV[1] .. 'log:' .. id, entry[1], unpack(entry[2])) end
redis.call('HSET', ARGV[1] .. 's:' .. id, 'head', string.match(first[2][1], '%d+'))
return #first
"""
"""Redis as it is when it comes back without the last of what it had."""
ROLLED_BACK = """
local key, id, log, last = ARGV[1] .. 's:' .. ARGV[2], ARGV[2], ARGV[1] .. 'log:' .. ARGV[2], ''
local entries = redis.call('XRANGE', log, '-', '+')
redis.call('DEL', log)
for _, entry in ipairs(entries) do
  if string.find(entry[2][4], 'turn.ended', 1, true) then break end
  redis.call('XADD', log, entry[1], unpack(entry[2]))
  last = string.match(entry[1], '%d+')
end
redis.call('HSET', key, 'head', last, 'in_turn', '1')
redis.call('ZADD', ARGV[1] .. 'open', redis.call('HGET', key, 'ordinal'), id)
redis.call('SADD', ARGV[1] .. 'open:' .. ARGV[3], id)
return 1
"""
"""Redis as it was before the entry with the end of the turn."""


async def unhurried(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.NoticePosted(topic="t", title="begun")
    await asyncio.sleep(1.0)


def break_once(one: Replica, script: str) -> list[str]:
    """The next reply to that script is lost, after it was carried out; what was lost."""
    change, lost = one.redis.run_script, list[str]()

    async def breaking(called: str, *given: Any) -> Any:
        answer = await change(called, *given)
        if called == script and not lost:
            lost.append(called)
            raise RedisUnreachable("the connection was lost")
        return answer

    one.redis.run_script = breaking  # type: ignore[method-assign]
    return lost


async def closed_by_somebody(one: Replica, session_id: str) -> None:
    """The turn that was left behind is over, and the session takes another message."""
    await ended(one, session_id)
    records = await one.sessions.records("ann", session_id)
    lawful(records)
    end, = (record.event for record in records if isinstance(record.event, m.TurnEnded))
    assert end.outcome is m.Outcome.FAILED and end.fault is not None and end.fault.code == "interrupted"
    assert (await one.sessions.submit("ann", session_id, [HELLO])).begun


async def test_a_turn_is_closed_though_the_reply_to_its_claim_was_lost() -> None:
    async with replicas(2, endless) as (first, second):
        session_id = await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        lost = break_once(second, "claim")
        await first.die()
        await closed_by_somebody(second, session_id)
        assert lost, "the claim that came to nothing was tried"


async def test_a_turn_is_closed_though_its_log_could_not_be_read_at_first() -> None:
    async with replicas(2, endless) as (first, second):
        session_id = await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        head, failed = second.log.head, list[str]()

        async def failing(session_id: str) -> Any:
            if second.log.holds(session_id) and not failed:
                failed.append(session_id)
                raise RedisUnreachable("the connection was lost")
            return await head(session_id)

        second.log.head = failing  # type: ignore[method-assign]
        await first.die()
        await closed_by_somebody(second, session_id)
        assert failed == [session_id]


async def test_a_turn_whose_log_has_lost_its_end_is_closed_by_its_own_server() -> None:
    async with replicas(2, endless) as (first, second):
        session_id = await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        await until(lambda: first.table.get(session_id).stored_seq > 10)
        assert await first.redis._writing.ask("EVAL", SHORTENED, 0, first.redis.prefix, session_id) == 2
        await until(lambda: first.table.get(session_id) is None
                    or first.table.get(session_id).view.status is m.SessionStatus.IDLE)
        await closed_by_somebody(second, session_id)


async def test_a_session_whose_claim_a_failover_has_lost_is_left_to_whoever_claimed_it_then() -> None:
    """The new primary has not heard of the claim of this server; another server has claimed the session there."""
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        await ended(first, session_id)
        held = int(first.log.token_of(session_id) or 0)
        key = first.redis.key("s", session_id)
        await first.redis._writing.ask("HSET", key, "holder", second.redis.replica, "token", held - 1)
        first.log.primary_changed()
        assert first.log.holds(session_id)
        await first.sessions.get("ann", session_id)
        assert not first.log.holds(session_id)
        await first.sessions.submit("ann", session_id, [HELLO])
        assert second.log.holds(session_id)
        [token] = await first.redis.read_all([("HGET", key, "token")])
        assert second.log.token_of(session_id) == token.decode()
        lawful(await first.log.read(session_id))


async def test_streams_are_cut_after_a_failover_because_they_may_show_what_it_has_lost() -> None:
    async with replicas(2, quick) as servers:
        session_id = await made(servers[0])
        cursors = [await one.sessions.subscribe("ann", session_id, "plain") for one in servers]
        for one in servers:
            one.log.primary_changed()
            assert not one.hub.is_watched(session_id)
        assert servers[1].table.get(session_id) is None
        for cursor in cursors:
            cursor.close()


async def test_two_claims_never_grow_a_token_alike() -> None:
    async with replicas(1, quick) as (one,):
        steps, claim = list[Any](), one.redis.run_script

        async def noted(script: str, *given: Any) -> Any:
            if script == "claim":
                steps.append(given[2])
            return await claim(script, *given)

        one.redis.run_script = noted  # type: ignore[method-assign]
        sessions = [await made(one) for _ in range(5)]
        await one.sessions._held.hand_over_all()
        for session_id in sessions:
            await one.sessions.submit("ann", session_id, [HELLO])
        assert len(set(steps)) == len(sessions) and all(1 <= step <= 2 ** 24 for step in steps)


async def test_a_session_whose_end_of_turn_redis_has_lost_does_not_stay_busy() -> None:
    """Redis comes back without its last moments; its server has nothing to append by which it would notice."""
    async with replicas(2, unhurried) as (first, second):
        session_id, other = await made(first), await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        await ended(first, session_id)
        await first.log.flush()
        redis = first.redis
        assert await redis._writing.ask("EVAL", ROLLED_BACK, 0, redis.prefix, session_id, redis.replica)
        assert (await second.sessions.get("ann", session_id)).status is m.SessionStatus.RUNNING
        first.sessions.inbox.missed()
        await closed_by_somebody(second, session_id)
        assert first.log.holds(other)


async def test_a_turn_that_began_as_its_server_woke_is_closed_though_the_server_was_thought_dead() -> None:
    """It was accepted before the server slept and written before its next beat, which did not come."""
    async with replicas(2, endless) as (first, second):
        session_id = await made(first)
        await first.freeze()
        known = second.redis.key("replicas")
        async with asyncio.timeout(10 * LEASE):
            while await second.redis._reading.ask("SISMEMBER", known, first.redis.replica):  # noqa: ASYNC110
                await asyncio.sleep(LEASE / 20)
        first.table.get(session_id).submit([HELLO])
        await first.log.flush()
        await first.die()
        await closed_by_somebody(second, session_id)


async def test_a_server_that_takes_many_sessions_over_keeps_its_own() -> None:
    """To take over what others left behind may take longer than a lease lasts."""
    async with replicas(2, asking) as (first, second):
        waiting = [await made(first) for _ in range(15)]
        for session_id in waiting:
            await first.sessions.submit("ann", session_id, [HELLO])
        await until(lambda: all(first.table.get(one).view.asks for one in waiting))
        await first.log.flush()
        take, lives = second.sessions._claims._take, list[int]()

        async def slow(session_id: str, token: str, head: int) -> None:
            await asyncio.sleep(LEASE / 5)
            lives.append(await second.redis._reading.ask("EXISTS", second.redis.key("replica", second.redis.replica)))
            await take(session_id, token, head)

        second.sessions._claims._take = slow  # type: ignore[method-assign]
        await first.die()
        await until(lambda: all(map(second.log.holds, waiting)))
        assert lives == [1] * len(waiting)


async def test_who_waits_for_what_was_dropped_is_told_though_what_left_before_was_stored() -> None:
    """The write that is on its way succeeds after the session was lost: what came since will not be written."""
    async with replicas(1, quick) as (first,):
        session_id = await made(first)
        change_all, stored, answered = first.redis.run_scripts, asyncio.Event(), asyncio.Event()

        async def slow(calls: Any, *extra: Any) -> Any:
            replies = await change_all(calls, *extra)
            if calls[0][0] == "append":
                stored.set()
                await answered.wait()
            return replies

        first.redis.run_scripts = slow  # type: ignore[method-assign]
        one = asyncio.create_task(first.sessions.update("ann", session_id, title="one"))
        await stored.wait()
        other = asyncio.create_task(first.sessions.update("ann", session_id, metadata={"n": 2}))
        await until(lambda: session_id in first.log._pending)
        first.sessions._held.lose(session_id)
        answered.set()
        async with asyncio.timeout(60):
            await asyncio.gather(one, other)
        view = await first.sessions.get("ann", session_id)
        assert (view.title, view.metadata) == ("one", {"n": 2})


async def test_a_session_that_was_deleted_while_its_server_slept_is_not_found_there_either() -> None:
    async with replicas(2, quick) as (first, second):
        session_id, other = await made(first), await made(first)
        cursor = await first.sessions.subscribe("ann", session_id, "streams")
        await first.freeze()
        await asyncio.sleep(1.5 * LEASE)
        await second.sessions.delete("ann", session_id)
        with pytest.raises(NotFound):
            await first.sessions.get("ann", session_id)
        assert (await first.sessions.get("ann", other)).session_id == other
        await first.thaw()
        async with asyncio.timeout(60):
            while await cursor.chunks():
                pass
        assert not first.log.holds(session_id)


async def test_nothing_is_in_doubt_while_all_is_well() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        await second.sessions.submit("ann", session_id, [HELLO])
        await ended(second, session_id)
        await first.sessions._held.hand_over(session_id)
        assert await second.sessions._claims.owner_of(session_id) is None
        assert not first.sessions._held.doubtful and not second.sessions._held.doubtful
