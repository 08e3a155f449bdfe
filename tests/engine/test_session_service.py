"""Sessions are made, found, listed and deleted; other people's do not exist."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

import gateway.model as m
from gateway.errors import NotFound, Overloaded, TooLarge
from gateway.ports import BackendEvent, Turn
from gateway.storage.log import MemoryLog
from tests.support.engine.engine_fixture import EngineFixture, RecordedCleanup
from tests.support.gateway_server import until


async def patient(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.MessageStarted(message_id="m1")
    await asyncio.Event().wait()


async def test_another_users_session_does_not_exist() -> None:
    stage = EngineFixture(patient)
    view = await stage.service.create("ann", "agent")
    calls = [
        stage.service.get("bob", view.session_id),
        stage.service.delete("bob", view.session_id),
        stage.service.submit("bob", view.session_id, [m.SendMessage(content="hi")]),
        stage.service.subscribe("bob", view.session_id, "plain"),
        stage.service.records("bob", view.session_id),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            await call
    assert (await stage.service.list("bob"))[0] == []
    assert (await stage.service.get("ann", view.session_id)) is view


async def test_an_unknown_agent_is_not_found() -> None:
    with pytest.raises(NotFound, match="no agent 'nobody'"):
        await EngineFixture(patient).service.create("", "nobody")


async def test_pages_follow_each_other() -> None:
    stage = EngineFixture(patient)
    made = [(await stage.service.create("", "agent")).session_id for _ in range(5)]
    seen, before = [], None
    while True:
        page, before = await stage.service.list("", before=before, limit=2)
        seen += [view.session_id for view in page]
        if before is None:
            break
    assert seen == made[::-1]


async def test_deleting_ends_the_turn_and_forgets_everything() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    cursor = await stage.service.subscribe("", session.view.session_id, "plain")
    await stage.until(session, m.MessageStarted)
    await cursor.chunks()
    await stage.service.delete("", session.view.session_id)
    said = [frame.body.split()[1] for chunk in await cursor.chunks() for frame in chunk.frames]
    assert said == [b"message.ended", b"turn.ended", b"session.closed"], "who watches sees it end well"
    assert await cursor.chunks() == ()
    with pytest.raises(NotFound):
        await stage.service.get("", session.view.session_id)
    assert list(await stage.runtime.log.read(session.view.session_id)) == []
    assert stage.runtime.log.session_count == 0


async def test_there_is_a_limit_to_sessions_watchers_and_seeds() -> None:
    stage = EngineFixture(patient, max_sessions=1, max_subscribers=1, history_messages=1)
    with pytest.raises(TooLarge):
        await stage.service.create("", "agent", history=[m.SeedMessage(role=m.Role.USER, content="x")] * 2)
    view = await stage.service.create("", "agent")
    with pytest.raises(Overloaded):
        await stage.service.create("", "agent")
    await stage.service.subscribe("", view.session_id, "plain")
    with pytest.raises(Overloaded):
        await stage.service.subscribe("", view.session_id, "plain")


@pytest.mark.parametrize(("cancel", "running"), [(False, 1), (True, 0)])
async def test_what_a_turn_does_when_its_client_leaves_is_a_setting(cancel: bool, running: int) -> None:
    stage = EngineFixture(patient)
    stage.runtime.cancel_on_disconnect = cancel
    session = await stage.session()
    receipt = session.submit([m.SendMessage(content="go")])
    assert receipt.turn_id is not None
    await stage.service.client_left("", session.view.session_id, receipt.turn_id)
    assert stage.table.turn_count == running


async def test_a_session_knows_its_agent_and_its_turns() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    session_id = session.view.session_id
    assert stage.table.agent_of(session_id) == "agent"
    assert stage.table.agent_of("sess_none") == ""
    assert stage.table.turn_start(session_id, session.view.head) == 2
    assert stage.table.turn_start(session_id, 0) == 0
    assert stage.table.turn_start("sess_none", 9) == 0


async def test_who_leaves_after_its_turn_leaves_the_next_one_alone() -> None:
    stage = EngineFixture(patient)
    stage.runtime.cancel_on_disconnect = True
    session = await stage.session()
    first = session.submit([m.SendMessage(content="go")])
    session.submit([m.Interrupt(), m.SendMessage(content="once more")])
    head = session.view.head
    assert first.turn_id is not None
    await stage.service.client_left("", session.view.session_id, first.turn_id)
    assert (session.view.head, stage.table.turn_count) == (head, 1), "nobody is said to have interrupted anything"


async def test_who_leaves_while_nothing_can_be_stored_is_told_nothing() -> None:
    stage = EngineFixture(patient)
    stage.runtime.cancel_on_disconnect = True
    session = await stage.session()
    receipt = session.submit([m.SendMessage(content="go")])
    assert receipt.turn_id is not None
    stage.runtime.log.write_error = Overloaded("full")  # type: ignore[misc]
    await stage.service.client_left("", session.view.session_id, receipt.turn_id)
    assert stage.table.turn_count == 1


async def test_a_client_that_hangs_up_does_not_leave_a_session_half_deleted() -> None:
    class Slow(MemoryLog):
        may_forget = asyncio.Event()

        async def forget(self, session_id: str) -> None:
            await self.may_forget.wait()
            await super().delete_session(session_id)

    log, cleanup = Slow(), RecordedCleanup()
    stage, put_away = EngineFixture(patient, log=log, cleanup=cleanup), cleanup.deleted
    session_id = (await stage.session()).view.session_id
    deleting = asyncio.create_task(stage.service.delete("", session_id))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    deleting.cancel()
    await asyncio.wait([deleting])
    with pytest.raises(NotFound):
        await stage.service.get("", session_id)
    log.may_forget.set()
    await until(lambda: put_away)
    assert (put_away, len(stage.table), stage.runtime.log.session_count) == ([session_id], 0, 0)
