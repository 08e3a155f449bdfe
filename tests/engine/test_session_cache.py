"""Sessions are changed, closed and read again; sub-agents are put away; the list can be walked in both directions."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

import gateway.model as m
from gateway.errors import Conflict, NotFound
from gateway.ports import BackendEvent, ScopedEvent, SessionHead, Turn
from gateway.storage.log import MemoryLog
from tests.support.engine.engine_fixture import EngineFixture, lawful, refolded
from tests.support.gateway_server import until


async def forking(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    """One sub-agent, and many words."""
    yield ScopedEvent("scope_1", m.ScopeOpened(parent=m.ROOT, title="Helper"))
    yield m.MessageStarted(message_id="m")
    yield m.BlockStarted(block_id="b", message_id="m", kind=m.BlockKind.TEXT)
    for _ in range(600):
        yield m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="x")
    yield m.BlockEnded(block_id="b", message_id="m", kind=m.BlockKind.TEXT, text="x" * 600)
    yield m.MessageEnded(message_id="m")


async def patient(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield ScopedEvent("scope_1", m.ScopeOpened(parent=m.ROOT))
    await asyncio.Event().wait()


async def archiving(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield ScopedEvent("scope_1", m.ScopeStatusChanged(status=m.ScopeStatus.ARCHIVED))


async def test_an_update_changes_what_it_names() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    view = await stage.service.update("", session.view.session_id, title="Trip")
    view = await stage.service.update("", session.view.session_id, metadata={"a": 1})
    assert (view.title, view.metadata) == ("Trip", {"a": 1})
    assert refolded(view, await stage.records(session)) == view


async def test_a_session_that_is_not_told_of_its_records_any_more_is_read_from_the_log() -> None:
    """It was lost while they were stored, and claimed again: another object stands for it now."""
    stage = EngineFixture(patient)
    session = await stage.session()
    view = await stage.service.update("", session.view.session_id, title="Trip")
    session.stored_seq -= 1
    shown = await stage.service.get("", session.view.session_id)
    assert shown is not view
    assert (shown.title, shown.head) == ("Trip", view.head)


async def test_a_closed_session_can_be_read_and_nothing_else() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session_id = session.view.session_id
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.ScopeStatusChanged)
    view = await stage.service.close("", session_id, m.CloseReason.ARCHIVED)
    assert (view.status, view.closed, view.closed_at) == (m.SessionStatus.CLOSED, m.CloseReason.ARCHIVED, stage.now)
    assert stage.watchman.ended == ["interrupted"]
    head = view.head
    assert (await stage.service.close("", session_id, m.CloseReason.TERMINATED)).closed is m.CloseReason.ARCHIVED
    for attempt in (stage.service.update("", session_id, title="x"),
                    stage.service.archive_scope("", session_id, "scope_1"),
                    stage.service.submit("", session_id, [m.SendMessage(content="x")])):
        with pytest.raises(Conflict):
            await attempt
    assert view.head == head
    assert (await stage.service.get("", session_id)) is view
    lawful(await stage.records(session))


async def test_a_sub_agent_that_has_ended_can_be_put_away() -> None:
    stage = EngineFixture(forking)
    session = await stage.session()
    session_id = session.view.session_id
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.TurnEnded)
    assert session.view.scopes["scope_1"].status is m.ScopeStatus.ENDED
    view = await stage.service.archive_scope("", session_id, "scope_1")
    assert (view.scopes["scope_1"].status, view.scopes["scope_1"].archived_at) == (m.ScopeStatus.ARCHIVED, stage.now)
    head = view.head
    await stage.service.archive_scope("", session_id, "scope_1")
    assert view.head == head
    with pytest.raises(NotFound):
        await stage.service.archive_scope("", session_id, "scope_2")
    records = await stage.records(session)
    lawful(records)
    assert refolded(view, records) == view


async def test_a_sub_agent_at_work_cannot_be_put_away() -> None:
    stage = EngineFixture(patient)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.ScopeStatusChanged)
    with pytest.raises(Conflict):
        await stage.service.archive_scope("", session.view.session_id, "scope_1")
    session.run.stop()  # type: ignore[union-attr]


async def test_to_put_away_is_not_a_backends_to_say() -> None:
    stage = EngineFixture(archiving)
    session = await stage.session()
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.TurnEnded)
    ended = session.view.ended
    assert ended is not None and ended.stop_reason is m.StopReason.ERROR


async def test_what_is_read_is_what_a_subscriber_gets() -> None:
    stage = EngineFixture(forking)
    session = await stage.session()
    session_id = session.view.session_id
    session.submit([m.SendMessage(content="go")])
    await stage.until(session, m.TurnEnded)
    cursor = await stage.service.subscribe("", session_id, "plain")
    watched = list(await cursor.chunks())
    while len(watched) < session.view.head:
        watched += await cursor.chunks()
    cursor.close()
    assert [chunk async for chunk in await stage.service.read("", session_id, "plain")] == watched
    middle = [chunk async for chunk in await stage.service.read("", session_id, "plain", after=3, upto=590)]
    assert middle == watched[3:590]
    assert [chunk async for chunk in await stage.service.read("", session_id, "plain", after=10**6)] == []
    some = await stage.service.records("", session_id, 2, 3)
    assert [record.seq for record in some] == [3, 4, 5]
    with pytest.raises(NotFound):
        [chunk async for chunk in await stage.service.read("bob", session_id, "plain")]


async def test_the_list_can_be_walked_in_both_directions() -> None:
    stage = EngineFixture(patient)
    made = [(await stage.service.create("ann", "agent")).session_id for _ in range(5)]
    await stage.service.create("bob", "agent")
    places = {one: (await stage.service.head("ann", one)).ordinal for one in made}

    async def walk(**window: int | bool) -> list[str]:
        return [head.session_id for head in await stage.service.heads("ann", **window)]  # type: ignore[arg-type]

    assert await walk() == made[::-1]
    assert await walk(oldest_first=True, limit=2) == made[:2]
    assert await walk(oldest_first=True, after=places[made[1]], limit=2) == made[2:4]
    assert await walk(before=places[made[3]], limit=2) == [made[2], made[1]]
    assert await walk(after=places[made[0]], before=places[made[4]]) == made[3:0:-1]
    for attempt in (stage.service.head("bob", made[0]), stage.service.head("ann", "sess_none")):
        with pytest.raises(NotFound):
            await attempt


class Late(MemoryLog):
    """A log that is looked into, and takes what is `held`, only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_look, self.stored = asyncio.Event(), asyncio.Event()
        self.held: list[m.Record] | None = None

    async def head(self, session_id: str) -> SessionHead | None:
        await self.may_look.wait()
        return await super().head(session_id)

    def append(self, record: m.Record) -> None:
        if self.held is None:
            super().append(record)
        else:
            self.held.append(record)

    async def wait_stored(self, session_id: str, seq: int) -> None:
        if self.held is not None:
            await self.stored.wait()

    def store(self) -> None:
        held, self.held = self.held or [], None
        for record in held:
            self.append(record)
        self.stored.set()


async def test_who_waited_for_a_session_that_was_let_go_again_gets_the_one_that_is_at_hand() -> None:
    """Two of the same session would both write its log, each under the same numbers."""
    log = Late()
    stage = EngineFixture(patient, log=log, cached_sessions=1)
    one, two, _ = [(await stage.session()).view.session_id for _ in range(3)]
    log.held = []
    updating = [asyncio.create_task(stage.service.update("", session_id, title="Trip")) for session_id in (one, two)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    log.may_look.set()  # both come at once, and the second takes the place of the first
    await until(lambda: len(log.held or ()) == 2)
    updating.append(asyncio.create_task(stage.service.update("", one, title="Journey")))
    await until(lambda: len(log.held or ()) == 3)
    log.store()
    async with asyncio.timeout(30):
        await asyncio.gather(*updating)
    assert [record.seq for record in await log.read(one)] == [1, 2, 3]
    assert (await stage.service.get("", one)).title == "Journey"
