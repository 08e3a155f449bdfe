"""A server that stops waits for what runs: no longer than it was told to, and not in a hurry."""

import asyncio
from collections.abc import AsyncGenerator, Iterator

import gateway.model as m
from gateway.engine import SessionTable
from gateway.engine.drain_waits import wait_for_turns, wait_unless_forced
from gateway.engine.turn import TurnRun
from gateway.ports import BackendEvent, Turn
from tests.support.engine.engine_fixture import EngineFixture


async def patient(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.MessageStarted(message_id="m1")
    await asyncio.Event().wait()


async def test_draining_waits_for_turns_and_then_ends_them() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.MessageStarted)
    await stage.service.drain(0.01, asyncio.Event())
    assert isinstance((await stage.records(session))[-1].event, m.TurnEnded)
    assert stage.table.turn_count == 0


async def test_draining_in_a_hurry_does_not_wait() -> None:
    stage, hurry = EngineFixture(patient), asyncio.Event()
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    hurry.set()
    async with asyncio.timeout(30):
        await stage.service.drain(3600, hurry)
    assert stage.table.turn_count == 0


async def test_a_turn_that_has_come_to_wait_for_people_is_not_waited_for() -> None:
    asked = asyncio.Event()

    async def play(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        await asked.wait()
        await turn.ask(m.ContinuationAsk(turn=1, message="go on?"))
        yield m.MessageStarted(message_id="m1")

    stage = EngineFixture(play)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    draining = asyncio.create_task(stage.service.drain(3600, asyncio.Event()))
    await asyncio.sleep(0)
    assert not draining.done()
    asked.set()
    async with asyncio.timeout(30):
        await draining
    assert isinstance((await stage.records(session))[-1].event, m.TurnSuspended), "it waits on in the log"
    assert session.view.status is m.SessionStatus.SUSPENDED


async def test_where_nothing_runs_nobody_looks_twice() -> None:
    looks: list[str] = []

    class Watched(SessionTable):
        def running_turns(self) -> Iterator[TurnRun]:
            looks.append("look")
            return super().running_turns()

    async with asyncio.timeout(30):
        await wait_for_turns(Watched(), EngineFixture(patient).hub, 3600, asyncio.Event())
    assert looks == ["look"]


async def test_what_is_not_done_in_time_is_broken_off() -> None:
    broken_off = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.set()

    async with asyncio.timeout(30):
        await wait_unless_forced(asyncio.Event(), 0.01, work())
    assert broken_off.is_set()
