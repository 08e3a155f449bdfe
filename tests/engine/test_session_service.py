"""Sessions are made, imported, found, listed and deleted; other people's do not exist."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from msgspec.structs import replace
from structlog.testing import capture_logs

import gateway.model as m
from gateway.errors import Invalid, NotFound, Overloaded, TooLarge
from gateway.ports import BackendEvent, Turn
from gateway.storage.log import MemoryLog
from tests.support.engine.engine_fixture import EngineFixture, RecordedCleanup, lawful
from tests.support.gateway_server import until
from tests.support.record_streams import sessions


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


async def test_an_operator_is_warned_once_before_there_are_too_many_sessions() -> None:
    stage = EngineFixture(patient, max_sessions=10)

    async def warnings(new: int) -> list[int]:
        with capture_logs() as told:
            made = [await stage.service.create("", "agent") for _ in range(new)]
        left.extend(view.session_id for view in made)
        return [line["sessions"] for line in told if line["event"] == "sessions_nearly_full"]

    left = list[str]()
    assert await warnings(7) == []
    assert await warnings(3) == [8]
    with pytest.raises(Overloaded, match=r"retention\.sessions.*limits\.max_sessions"):
        await stage.service.create("", "agent")
    for _ in range(4):
        await stage.service.delete("", left.pop())
    assert await warnings(1) == []
    assert await warnings(2) == [8], "warned again after there was room"


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


async def play(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
    yield m.NoticePosted(topic="t", title="hello")


def record(seq: int, event: object, turn_id: str | None = None) -> m.Record:
    return m.Record(seq=seq, at=1000.0 + seq, session_id="sess_old", event=event, turn_id=turn_id)  # type: ignore[arg-type]


CREATED = record(1, m.SessionCreated(agent="agent", owner="ada", title="T"))


@pytest.fixture
def stage() -> EngineFixture:
    return EngineFixture(play)


async def test_an_adopted_session_is_whole_and_its_new_owners(stage: EngineFixture) -> None:
    told, closed = m.NoticePosted(topic="t", title="n"), m.SessionClosed(reason=m.CloseReason.ARCHIVED)
    view = await stage.service.import_session("bob", [CREATED, record(2, told), record(3, closed)])
    assert (view.owner, view.title, view.head, view.closed) == ("bob", "T", 2, None)
    assert view.session_id != "sess_old"
    kept = await stage.service.records("bob", view.session_id)
    assert [one.at for one in kept] == [1001.0, 1002.0]
    assert {one.session_id for one in kept} == {view.session_id}
    await stage.service.submit("bob", view.session_id, [m.SendMessage(content="go on")])


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([], "do not begin with a session"),
        ([record(1, m.NoticePosted(topic="t", title="n"))], "do not begin with a session"),
        ([CREATED, record(3, m.SessionUpdated(title="x"))], "record 3 cannot be taken over: it should be number 2"),
        ([CREATED, record(2, m.SessionCreated(agent="agent"))], r"record 2 .*session\.created has no place there"),
        ([CREATED, record(2, m.MessageStarted(message_id="m"), "t")], "while the turn is idle"),
        ([CREATED, record(2, m.TurnStarted(command_id="c"))], "belongs to no turn"),
        ([CREATED, record(2, m.TurnStarted(command_id="c"), "t")], "end in the middle of a turn"),
        ([CREATED, record(2, m.SessionRewound(to_seq=9))], "nothing is rewound to what comes later"),
        ([record(1, m.SessionCreated(agent="stranger"))], "there is no agent 'stranger'"),
        ([CREATED, record(2, m.SessionUpdated(settings=m.Settings(options={"odd": "x"})))], "has no option 'odd'"),
        (
            [CREATED, record(2, m.SessionClosed(reason=m.CloseReason.ARCHIVED)), record(3, m.SessionUpdated())],
            "has no place",
        ),
    ],
)
async def test_what_is_no_session_is_refused_and_leaves_nothing(
    stage: EngineFixture, records: list[m.Record], told: str,
) -> None:
    with pytest.raises(Invalid, match=told):
        await stage.service.import_session("bob", records)
    assert stage.runtime.log.session_count == 0
    assert await stage.service.list("bob") == ([], None)


async def test_what_is_to_come_has_not_happened(stage: EngineFixture) -> None:
    view = await stage.service.import_session("bob", [replace(CREATED, at=stage.now + 1000)])
    assert view.created_at == stage.now


@given(records=sessions())
async def test_any_session_can_be_adopted(records: list[m.Record]) -> None:
    stage = EngineFixture(play)
    records = [replace(records[0], event=replace(records[0].event, agent="agent")), *records[1:]]
    view = await stage.service.import_session("bob", records)
    kept = list(await stage.service.records("bob", view.session_id))
    lawful(kept)
    assert [m.encode_record(one.event) for one in kept[1:]] == [m.encode_record(one.event) for one in records[1:]]
    assert isinstance(kept[-1].event, m.TurnEnded) == isinstance(records[-1].event, m.TurnEnded)
