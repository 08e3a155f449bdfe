"""A session told elsewhere is taken over whole, or not at all."""

from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Invalid
from gateway.ports import BackendEvent, Turn
from tests.support.engine.engine_fixture import EngineFixture, lawful
from tests.support.record_streams import sessions


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
