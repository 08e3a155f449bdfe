"""A call that was passed on is not tried anew by mistake: what is not known is told, and what is old is not done."""

import asyncio
from typing import Any

import pytest

import gateway.model as m
from gateway.cluster.messages import RpcRequest, SubmitCall, encode_message
from gateway.errors import GatewayError, OutcomeUnknown, Overloaded
from gateway.storage.redis import RedisUnreachable
from tests.support.cluster.agents import HELLO, ended, made, quick
from tests.support.cluster.replicas import LEASE, Replica, replicas
from tests.support.gateway_server import until


def deafen(one: Replica, words: bytes = b'"replied"') -> None:
    """It hears no answers, or none with these words."""
    hear = one.sessions.inbox.received
    one.sessions.inbox.received = (  # type: ignore[method-assign]
        lambda channel, message: None if words in message else hear(channel, message))


def cut(one: Replica) -> Any:
    """It does not reach Redis any more; what mends that."""
    change = one.redis.run_script

    async def gone(script: str, *given: Any) -> Any:
        raise RedisUnreachable("Redis cannot be reached")

    def mend() -> None:
        one.redis.run_script = change  # type: ignore[method-assign]

    one.redis.run_script = gone  # type: ignore[method-assign]
    return mend


async def test_who_cannot_tell_whether_it_was_done_says_so() -> None:
    """The writer has done it; its answer does not come, and Redis cannot be asked any more."""
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        deafen(second)
        asked = asyncio.create_task(second.sessions.submit("ann", session_id, [HELLO]))
        await until(lambda: first.watchman.ended)
        mend = cut(second)
        with pytest.raises(OutcomeUnknown, match="it is not known whether this was done") as told:
            await asked
        mend()
        assert (told.value.code, told.value.fault.retryable) == (m.FaultCode.TIMEOUT, False)
        records = await first.sessions.records("ann", session_id)
        assert sum(isinstance(record.event, m.TurnStarted) for record in records) == 1


async def test_who_can_tell_after_a_while_tells_what_was_done() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        deafen(second)
        asked = asyncio.create_task(second.sessions.submit("ann", session_id, [HELLO]))
        await until(lambda: first.watchman.ended)
        mend = cut(second)
        await first.log.flush()
        await first.die()
        await asyncio.sleep(LEASE)
        mend()
        receipt = await asked
        records = await second.sessions.records("ann", session_id)
        started, = (record for record in records if isinstance(record.event, m.TurnStarted))
        assert started.turn_id == receipt.turn_id


async def test_what_was_taken_and_could_not_be_stored_at_once_is_not_done_a_second_time() -> None:
    """The writer has trouble, and stores what it has taken when that is over; whoever asked it asks again meanwhile."""
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        deafen(second, b'"refused"')
        change_all, trouble, troubles = first.redis.run_scripts, first.log.failed, list[GatewayError]()

        async def failing(calls: Any, *extra: Any) -> Any:
            if calls[0][0] == "append" and not troubles:
                raise RedisUnreachable("Redis cannot be reached")
            return await change_all(calls, *extra)

        def noticed(why: GatewayError) -> None:
            troubles.append(why)
            trouble(why)

        first.redis.run_scripts, first.log.failed = failing, noticed  # type: ignore[method-assign]
        receipt = await second.sessions.submit("ann", session_id, [HELLO])
        await ended(second, session_id)
        assert troubles
        records = await second.sessions.records("ann", session_id)
        assert [one.turn_id for one in records if isinstance(one.event, m.TurnStarted)] == [receipt.turn_id]


async def test_who_cannot_store_what_it_has_taken_does_not_say_that_nothing_was_done() -> None:
    async with replicas(1, quick) as (first,):
        session_id = await made(first)
        change_all = first.redis.run_scripts

        async def failing(calls: Any, *extra: Any) -> Any:
            raise RedisUnreachable("Redis cannot be reached")

        first.redis.run_scripts = failing  # type: ignore[method-assign]
        with pytest.raises(OutcomeUnknown, match="it is not known whether this was done: nothing can be stored"):
            await first.sessions.submit("ann", session_id, [HELLO])
        with pytest.raises(Overloaded, match="nothing can be stored"):
            await first.sessions.submit("ann", session_id, [HELLO])
        first.redis.run_scripts = change_all  # type: ignore[method-assign]
        await until(lambda: first.log.is_settled(session_id))
        records = await first.sessions.records("ann", session_id)
        assert sum(isinstance(record.event, m.TurnStarted) for record in records) == 1


async def test_who_has_asked_nobody_may_be_asked_again() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        await second.sessions.get("ann", session_id)
        mend = cut(second)
        with pytest.raises(Overloaded, match="cannot be reached"):
            await second.sessions.submit("ann", session_id, [HELLO])
        mend()
        await second.sessions.submit("ann", session_id, [HELLO])
        await ended(second, session_id)
        records = await first.sessions.records("ann", session_id)
        assert sum(isinstance(record.event, m.TurnStarted) for record in records) == 1


async def test_a_letter_that_a_server_finds_when_it_wakes_is_not_carried_out() -> None:
    """Whoever wrote it has long been told that it was refused, or has done it otherwise."""
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        letter = encode_message(RpcRequest(request="r1", sender=second.redis.replica, call=SubmitCall(
            owner="ann", session_id=session_id, commands=(HELLO,))))
        await first.freeze()
        await asyncio.sleep(1.5 * LEASE)
        first.sessions.inbox.received(first.sessions.inbox.addresses[0], letter)
        assert not first.sessions.rpc._serving
        await first.thaw()
        await until(lambda: first.sessions._leases.first.is_good)
        first.sessions.inbox.received(first.sessions.inbox.addresses[0], letter)
        await until(lambda: first.watchman.ended)
        await first.log.flush()
        records = await first.sessions.records("ann", session_id)
        assert sum(isinstance(record.event, m.TurnStarted) for record in records) == 1


async def test_a_call_is_carried_out_though_it_comes_while_its_server_hands_the_session_over() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        change, publish, over, answers = first.redis.run_script, first.redis.publish, asyncio.Event(), list[bytes]()

        async def slow(script: str, *given: Any) -> Any:
            if script == "release":
                await over.wait()
            return await change(script, *given)

        async def noted(channel: str, message: bytes) -> int:
            answers.append(message)
            return await publish(channel, message)

        first.redis.run_script, first.redis.publish = slow, noted  # type: ignore[method-assign]
        draining = asyncio.create_task(first.sessions.drain(0.1, asyncio.Event()))
        await until(lambda: not first.log.holds(session_id))
        asked = asyncio.create_task(second.sessions.update("ann", session_id, title="theirs"))
        await until(lambda: answers)
        over.set()
        assert (await asked).title == "theirs"
        assert second.log.holds(session_id)
        await draining
