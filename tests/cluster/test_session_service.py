"""Any server of several takes any command: it is done by the session's writer, once, and seen everywhere."""

import asyncio
import secrets
from unittest.mock import patch

import pytest

import gateway.model as m
from gateway.cluster.messages import RpcRequest, SubmitCall
from gateway.engine import RANDOM_LENGTH
from gateway.errors import Busy, Conflict, Invalid, NotFound
from gateway.ports import CURRENT_IDEMPOTENCY_KEY, IdempotencyKey, Receipt
from gateway.storage.redis import RedisUnreachable
from tests.support.cluster.agents import HELLO, asking, ended, endless, made, quick
from tests.support.cluster.replicas import LEASE, Replica, heard, replicas
from tests.support.engine.engine_fixture import lawful
from tests.support.gateway_server import until


async def test_a_command_is_done_by_the_writer_and_seen_by_whoever_passed_it_on() -> None:
    async with replicas(3, quick) as (first, second, third):
        session_id = await made(first)
        receipt = await second.sessions.submit("ann", session_id, [HELLO])
        assert receipt.begun and receipt.turn_id is not None
        assert (await second.sessions.get("ann", session_id)).head >= receipt.records[-1].seq
        await ended(third, session_id)
        assert first.watchman.ended == ["completed"]
        assert second.watchman.ended == third.watchman.ended == []
        assert [one.log.holds(session_id) for one in (first, second, third)] == [True, False, False]
        assert (await third.sessions.find_by_id("ann", receipt.turn_id)).session_id == session_id
        assert [view.session_id for view in (await second.sessions.list("ann"))[0]] == [session_id]


async def test_every_call_that_changes_something_reaches_the_writer() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        there = second.sessions
        assert (await there.update("ann", session_id, title="t", metadata={"a": 1})).title == "t"
        await there.post_event("ann", session_id, m.NoticePosted(topic="t", title="n"))
        await there.submit("ann", session_id, [HELLO])
        await ended(second, session_id)
        assert (await there.rewind("ann", session_id, 1)).entries == []
        with pytest.raises(NotFound, match="no sub-agent"):
            await there.archive_scope("ann", session_id, "sub")
        assert (await there.close("ann", session_id, m.CloseReason.ARCHIVED)).closed is m.CloseReason.ARCHIVED
        with pytest.raises(Conflict, match="archived"):
            await there.submit("ann", session_id, [HELLO])
        await there.delete("ann", session_id)
        for one in (first, second):
            with pytest.raises(NotFound):
                await one.sessions.get("ann", session_id)
        lawful_until_now = await first.log.read(session_id)
        assert list(lawful_until_now) == []


KEY = ("ann", "POST", "/sessions/1/events", "key-1")


async def keyed(server: Replica, session_id: str, key: IdempotencyKey = KEY) -> Receipt:
    """Submit a message as a request with an idempotency key does."""
    CURRENT_IDEMPOTENCY_KEY.set(key)
    return await server.sessions.submit("ann", session_id, [HELLO])


async def test_commands_under_one_key_are_accepted_once_whichever_servers_a_client_sends_them_to() -> None:
    async with replicas(3, quick) as servers:
        session_id = await made(servers[0])
        at_once = [asyncio.create_task(keyed(server, session_id)) for server in (*servers, *servers)]
        receipts = await asyncio.gather(*at_once)
        await ended(servers[1], session_id)
        later = await asyncio.create_task(keyed(servers[2], session_id))
        accepted = [record for record in await servers[0].log.read(session_id)
                    if isinstance(record.event, m.InputAccepted)]
        assert len(accepted) == 1
        assert {receipt.turn_id for receipt in (*receipts, later)} == {accepted[0].turn_id}
        other = await asyncio.create_task(keyed(servers[1], session_id, (*KEY[:3], "key-2")))
        assert other.turn_id != later.turn_id, "another key is another request"


async def test_commands_that_were_refused_can_be_sent_again_under_their_key() -> None:
    async with replicas(2, endless) as (first, second):
        session_id = await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        for server in (first, second):
            with pytest.raises(Busy):
                await asyncio.create_task(keyed(server, session_id))
        await first.sessions.submit("ann", session_id, [m.Interrupt()])
        await ended(first, session_id)
        assert (await asyncio.create_task(keyed(second, session_id))).begun


async def test_a_server_that_takes_a_session_over_knows_the_keys_of_the_one_before_it() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        receipt = await asyncio.create_task(keyed(first, session_id))
        await ended(first, session_id)
        await first.sessions.drain(1, asyncio.Event())
        again = await asyncio.create_task(keyed(second, session_id))
        assert second.log.holds(session_id)
        assert (again.turn_id, len(again.records)) == (receipt.turn_id, len(receipt.records))


async def test_a_refusal_comes_back_as_it_was() -> None:
    async with replicas(2, endless) as (first, second):
        session_id = await made(first)
        await second.sessions.submit("ann", session_id, [HELLO])
        with pytest.raises(Busy, match="a turn is running"):
            await second.sessions.submit("ann", session_id, [HELLO])
        with pytest.raises(NotFound):
            await second.sessions.submit("bob", session_id, [HELLO])
        with pytest.raises(Invalid, match="schema"):
            await second.sessions.submit("ann", session_id, [
                m.Interrupt(), m.SendMessage(content="x", output_schema={"type": "nonsense"})])
        await second.sessions.submit("ann", session_id, [m.Interrupt()])
        await ended(second, session_id)
        assert first.watchman.ended == ["interrupted"]


async def test_what_one_server_says_is_heard_at_another_in_order_and_once() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        early = await second.sessions.subscribe("ann", session_id, "d")
        await first.sessions.submit("ann", session_id, [HELLO])
        lines = await heard(early, "turn.ended")
        assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
        late = await second.sessions.subscribe("ann", session_id, "d", after=2)
        assert await heard(late, "turn.ended") == lines[2:]
        await second.sessions.submit("ann", session_id, [HELLO])
        assert await heard(early, "turn.ended") == await heard(late, "turn.ended")
        for cursor in (early, late):
            cursor.close()


async def test_an_ask_is_answered_through_any_server() -> None:
    async with replicas(3, asking) as (first, second, third):
        session_id = await made(first)
        await second.sessions.submit("ann", session_id, [HELLO])
        await until(lambda: first.table.get(session_id).view.asks)
        ask = next(iter((await third.sessions.get("ann", session_id)).asks.values()))
        assert [view.session_id for view in await second.sessions.active("ann")] == [session_id]
        await third.sessions.submit("ann", session_id, [
            m.AnswerQuestion(request_id=ask.request_id, selections={"0": (1,)})])
        await ended(third, session_id)
        records = await third.sessions.records("ann", session_id)
        lawful(records)
        assert any(isinstance(r.event, m.NoticePosted) and r.event.title == "AnswerQuestion" for r in records)


async def test_a_watcher_hears_the_end_of_a_session_that_is_deleted_elsewhere() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        cursor = await second.sessions.subscribe("ann", session_id, "d")
        await heard(cursor, "session.created")
        await first.sessions.delete("ann", session_id)
        assert (await heard(cursor, "session.closed"))[-1] == "2 session.closed"
        assert await cursor.chunks() == ()


async def test_a_turn_of_a_server_that_dies_is_closed_by_another() -> None:
    async with replicas(3, endless) as (first, second, third):
        session_id = await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        cursor = await second.sessions.subscribe("ann", session_id, "d")
        await first.die()
        lines = await heard(cursor, "turn.ended")
        assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
        cursor.close()
        assert sum(one.log.holds(session_id) for one in (second, third)) == 1
        end = next(r.event for r in await third.sessions.records("ann", session_id) if isinstance(r.event, m.TurnEnded))
        assert end.outcome is m.Outcome.FAILED and end.fault is not None and end.fault.code == "interrupted"


async def test_an_ask_of_a_server_that_dies_is_answered_at_another() -> None:
    async with replicas(2, asking) as (first, second):
        session_id = await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        await until(
            lambda: (
                first.table.get(session_id).stored_seq == first.table.get(session_id).view.head
                and first.table.get(session_id).view.asks
            )
        )
        before = list((await second.sessions.get("ann", session_id)).asks)
        await first.die()
        await second.sessions.submit(
            "ann", session_id, [m.AnswerQuestion(request_id=before[0], selections={"0": (0,)})]
        )
        await ended(second, session_id)
        assert second.watchman.ended == ["completed"]


async def test_a_server_that_was_away_is_fenced_off_and_its_watchers_read_on() -> None:
    async with replicas(2, endless) as (first, second):
        session_id = await made(first)
        await first.sessions.submit("ann", session_id, [HELLO])
        cursor = await first.sessions.subscribe("ann", session_id, "d")
        await heard(cursor, "notice.posted")
        await first.freeze()
        await until(lambda: second.log.holds(session_id))
        await first.thaw()
        lines = await heard(cursor, "turn.ended")
        assert not first.log.holds(session_id)
        assert [int(line.split()[0]) for line in lines] == list(range(int(lines[0].split()[0]), int(
            lines[-1].split()[0]) + 1))
        records = await second.sessions.records("ann", session_id)
        lawful(records)
        assert sum(isinstance(record.event, m.TurnEnded) for record in records) == 1
        assert first.watchman.ended == [], "what was fenced off is not counted as a turn of its own"
        cursor.close()


async def test_a_server_that_was_away_shows_nothing_that_it_does_not_hold_any_more() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        await first.freeze()
        await asyncio.sleep(1.5 * LEASE)
        await second.sessions.update("ann", session_id, title="theirs")
        assert (await first.sessions.get("ann", session_id)).title == "theirs"
        await first.thaw()
        assert (await first.sessions.update("ann", session_id, metadata={"n": 1})).metadata == {"n": 1}


async def test_a_call_that_was_carried_out_but_never_answered_is_not_carried_out_again() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        publish = first.redis.publish

        async def lost(channel: str, message: bytes) -> int:
            return 1 if b'"replied"' in message else await publish(channel, message)

        first.redis.publish = lost  # type: ignore[method-assign]
        asked = asyncio.create_task(second.sessions.submit("ann", session_id, [HELLO]))
        await until(lambda: first.watchman.ended)
        await first.log.flush()
        await first.die()
        receipt = await asked
        records = await second.sessions.records("ann", session_id)
        assert [record.turn_id for record in records if isinstance(record.event, m.TurnStarted)] == [receipt.turn_id]
        assert receipt.begun and receipt.records[0] in records


async def test_a_call_that_waited_for_a_server_that_slept_is_not_carried_out_a_second_time() -> None:
    """The sender carried it out itself when the sleeper's lease was over; then the sleeper holds the session again."""
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        request = secrets.token_hex(RANDOM_LENGTH // 2)
        letter = RpcRequest(request=request, sender=second.redis.replica, call=SubmitCall(
            owner="ann", session_id=session_id, commands=(HELLO,)))
        await first.sessions._held.hand_over(session_id)
        assert await second.sessions._claims.owner_of(session_id) is None
        done = await second.sessions._here(letter.call, request)
        await ended(second, session_id)
        await second.sessions._held.hand_over(session_id)
        answer = await first.sessions._serve(letter, False)
        assert done is not None and answer.receipt is not None and answer.receipt.turn_id == done.turn_id
        records = await first.sessions.records("ann", session_id)
        assert sum(isinstance(record.event, m.TurnStarted) for record in records) == 1


async def test_a_call_that_comes_twice_is_carried_out_once_and_answered_twice() -> None:
    async with replicas(2, quick) as (first, second):
        session_id = await made(first)
        publish, letters = second.redis.publish, list[bytes]()

        async def twice(channel: str, message: bytes) -> int:
            letters.append(message)
            await publish(channel, message)
            return await publish(channel, message)

        second.redis.publish = twice  # type: ignore[method-assign]
        await second.sessions.submit("ann", session_id, [HELLO])
        await ended(second, session_id)
        await publish(f"to:{first.redis.replica}", letters[0])
        await second.sessions.post_event("ann", session_id, m.NoticePosted(topic="t", title="after"))
        records = await second.sessions.records("ann", session_id)
        assert sum(isinstance(record.event, m.TurnStarted) for record in records) == 1


async def test_a_session_that_is_let_go_may_be_held_by_another() -> None:
    async with replicas(2, quick, cached_sessions=2) as (first, second):
        held = [await made(first) for _ in range(4)]
        await until(lambda: len(first.log.held) == 2)
        await until(lambda: not first.sessions._held._releases)
        await second.sessions.update("ann", held[0], title="mine")
        assert second.log.holds(held[0]) and not first.log.holds(held[0])
        assert (await first.sessions.get("ann", held[0])).title == "mine"


async def test_a_server_that_stops_hands_over_what_rests_and_leaves_what_waits() -> None:
    async with replicas(2, asking) as (first, second):
        resting, waiting = await made(first), await made(first)
        await first.sessions.submit("ann", waiting, [HELLO])
        await until(lambda: first.table.get(waiting).view.asks)
        draining = asyncio.create_task(first.sessions.drain(0.2, asyncio.Event()))
        await until(lambda: not first.log.holds(resting))
        assert (await second.sessions.update("ann", resting, title="mine")).title == "mine"
        await draining
        await first.sessions.rest()
        await until(lambda: second.log.holds(waiting))
        assert (await second.sessions.get("ann", waiting)).status is m.SessionStatus.SUSPENDED


async def test_a_server_that_stops_shows_turns_that_run_elsewhere_to_their_end() -> None:
    async with replicas(2, endless) as (first, second):
        session_id = await made(first)
        await second.sessions.submit("ann", session_id, [HELLO])
        watching = await second.sessions.subscribe("ann", session_id, "d")
        with patch("gateway.engine.session_service.LAST_FRAMES_SECONDS", 0):
            draining = asyncio.create_task(second.sessions.drain(3600, asyncio.Event()))
            for _ in range(5):  # what the other server stores while this one drains
                await heard(watching, "notice.posted")
            assert not draining.done()
            await first.sessions.submit("ann", session_id, [m.Interrupt()])
            await heard(watching, "turn.ended")
            assert list(await watching.chunks()) == [] and watching.is_draining
            await draining


async def test_a_server_that_stops_while_redis_refuses_ends_its_turns_all_the_same() -> None:
    async with replicas(2, endless) as (first, _):
        await made(first)
        running = await made(first)
        await first.sessions.submit("ann", running, [HELLO])
        with patch.object(first.log.redis, "run_script", side_effect=RedisUnreachable("Redis refuses: OOM")):
            await first.sessions.drain(0.1, asyncio.Event())
        assert first.watchman.ended == ["failed"]


async def test_one_of_them_leads_and_another_when_it_has_gone() -> None:
    async with replicas(3, quick) as servers:
        assert [one.sessions.leads for one in servers] == [True, False, False]
        await servers[0].sessions.rest()
        await until(lambda: sum(one.sessions.leads for one in servers[1:]) == 1)
        assert not servers[0].sessions.leads
